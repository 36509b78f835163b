/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { ChannelName } from "../../../events/channel.ts";
import { findChannel, pendingOf } from "../../../projections/deliveries.ts";
import { grouped } from "../document.tsx";
import { Time } from "./time.tsx";
import type { View } from "../view.ts";

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
        <span class="status red">suspended</span> since <Time at={suspended.since} isExact />:{" "}
        <bdi>{suspended.detail}</bdi>
      </>
    );
  }
  if (!view.settings.configured.includes(name)) {
    if (pending === 0) return <span class="status grey">not configured</span>;
    return (
      <>
        <span class="status red">not configured</span>: what is pending waits until it is
      </>
    );
  }
  const circuit = view.live?.circuit(name);
  if (circuit === "open") return <Status color="red" word="paused" why="its network failed several times in a row" />;
  if (circuit === "half_open")
    return <Status color="amber" word="trying again" why="one request tells whether its network is back" />;
  if (failures > 0) {
    const why = failures === 1 ? "the last attempt failed" : `the last ${grouped(failures)} attempts failed`;
    return <Status color="amber" word="failing" why={why} />;
  }
  return pending > 0 ? <Status color="amber" word="delivering" /> : <Status color="green" word="up to date" />;
}

interface StatusProps {
  readonly color: "green" | "amber" | "red";
  readonly word: string;
  readonly why?: string;
}

function Status({ color, word, why }: StatusProps): VNode {
  return (
    <>
      <span class={`status ${color}`}>{word}</span>
      {why === undefined ? null : `: ${why}`}
    </>
  );
}
