/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { ChannelName } from "../../../events/channel.ts";
import { findChannel, pendingOf } from "../../../projections/deliveries.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { Badge, type BadgeState } from "./icon.tsx";
import { Time } from "./time.tsx";
import type { View } from "../page-context.ts";

interface ChannelStatusProps {
  readonly view: View<"deliveries">;
  readonly name: ChannelName;
  /** Requests that failed in a row, where known. */
  readonly failuresInARow?: number;
}

export function ChannelStatus({ view, name, failuresInARow = 0 }: ChannelStatusProps): VNode {
  const [tone, icon, words, why] = readStatus(view, name, failuresInARow);
  return (
    <>
      <Badge state={[tone, icon, words]} />
      {why}
    </>
  );
}

type Status = readonly [...BadgeState, why?: ComponentChildren];

function readStatus(view: View<"deliveries">, name: ChannelName, failures: number): Status {
  const channel = findChannel(view.state("deliveries"), name);
  const pending = pendingOf(channel);
  if (channel.suspended !== null) {
    const { since, detail } = channel.suspended;
    const why = (
      <>
        {" since "}
        <Time at={since} isExact />: <bdi>{detail}</bdi>
      </>
    );
    return ["bad", "pause", "Suspended", why];
  }
  if (!view.settings.configured.includes(name)) {
    if (pending === 0) return ["neutral", "x", "Not configured"];
    return ["bad", "x", "Not configured", ": what is pending waits until it is"];
  }
  const circuit = view.live?.circuit(name);
  if (circuit === "open") return ["bad", "pause", "Paused", " its network failed several times in a row"];
  if (circuit === "half_open")
    return ["warn", "clock", "Trying again", " one request tells whether its network is back"];
  if (failures > 0) {
    const why = failures === 1 ? " the last attempt failed" : ` the last ${grouped(failures)} attempts failed`;
    return ["warn", "clock", "Failing", why];
  }
  return pending > 0 ? ["info", "clock", "Delivering"] : ["good", "check", "Up to date"];
}
