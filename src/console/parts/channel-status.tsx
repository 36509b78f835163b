/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { ChannelName } from "../../../events/channel.ts";
import { findChannel, pendingOf } from "../../../projections/deliveries.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { Badge, type IconName } from "./icon.tsx";
import { Time } from "./time.tsx";
import type { View } from "../page-context.ts";

interface ChannelStatusProps {
  readonly view: View;
  readonly name: ChannelName;
  /** Requests that failed in a row, where known. */
  readonly failuresInARow?: number;
}

export function ChannelStatus({ view, name, failuresInARow: failures = 0 }: ChannelStatusProps): VNode {
  const { suspended, ...state } = findChannel(view.state("deliveries"), name);
  const pending = pendingOf({ suspended, ...state });
  if (suspended !== null) {
    return (
      <>
        <Badge tone="bad" icon="pause">
          Suspended
        </Badge>{" "}
        since <Time at={suspended.since} isExact />: <bdi>{suspended.detail}</bdi>
      </>
    );
  }
  if (!view.settings.configured.includes(name)) {
    if (pending === 0) return <NotConfigured tone="neutral" />;
    return (
      <>
        <NotConfigured tone="bad" />: what is pending waits until it is
      </>
    );
  }
  const circuit = view.live?.circuit(name);
  if (circuit === "open") return <Status tone="bad" word="Paused" why="its network failed several times in a row" />;
  if (circuit === "half_open")
    return <Status tone="warn" word="Trying again" why="one request tells whether its network is back" />;
  if (failures > 0) {
    const why = failures === 1 ? "the last attempt failed" : `the last ${grouped(failures)} attempts failed`;
    return <Status tone="warn" word="Failing" why={why} />;
  }
  return pending > 0 ? <Status tone="info" word="Delivering" /> : <Status tone="good" word="Up to date" />;
}

interface StatusProps {
  readonly tone: "good" | "info" | "warn" | "bad";
  readonly word: string;
  readonly why?: string;
}

const ICONS = { good: "check", info: "clock", warn: "clock", bad: "pause" } as const satisfies Record<
  StatusProps["tone"],
  IconName
>;

function Status({ tone, word, why }: StatusProps): VNode {
  return (
    <>
      <Badge tone={tone} icon={ICONS[tone]}>
        {word}
      </Badge>
      {why === undefined ? null : <span> {why}</span>}
    </>
  );
}

function NotConfigured({ tone }: { readonly tone: "neutral" | "bad" }): VNode {
  return (
    <Badge tone={tone} icon="x">
      Not configured
    </Badge>
  );
}
