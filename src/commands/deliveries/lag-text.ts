import type { ChannelLag } from "../../delivery/lag.ts";
import { duration } from "../../platform/duration.ts";
import { printable, table } from "../table.ts";

const HEAD = ["channel", "backlog", "oldest click", "settled/min", "requested/min", "drained in", "state"];

export function lagsAsText(lags: readonly ChannelLag[], time: string): string {
  return `${table(HEAD, lags.map(row))}(${time})\n`;
}

function row(lag: ChannelLag): (string | number)[] {
  const { channel, backlog, oldest_click_seconds: age, drained_in_seconds: drained } = lag;
  const drain = drained === null ? "never" : duration(drained);
  const rates = [lag.settled_per_minute, lag.requested_per_minute];
  return [channel, backlog, age === null ? "" : duration(age), ...rates, drain, stateOf(lag)];
}

function stateOf({ configured, backlog, suspended, failures_in_a_row: failures }: ChannelLag): string {
  if (!configured && backlog > 0) return "not configured here";
  if (suspended !== null) return printable(`suspended since ${suspended.since}`);
  return failures === 0 ? "" : `the last ${failures === 1 ? "attempt" : `${failures} attempts`} failed`;
}
