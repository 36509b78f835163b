import type { ChannelName } from "../../../events/channel.ts";
import type { Suspended } from "../../../projections/deliveries.ts";
import { printable, table } from "../table.ts";

/** How far a channel is behind, as `--json` has it. */
export interface ChannelLag {
  readonly channel: ChannelName;
  /** Pending dispatches. */
  readonly backlog: number;
  /** Of the oldest click among it; null without one. */
  readonly oldest_click_seconds: number | null;
  readonly settled_per_minute: number;
  readonly requested_per_minute: number;
  /** Until nothing is pending; null: never, at this rate. */
  readonly drained_in_seconds: number | null;
  readonly failures_in_a_row: number;
  readonly suspended: { readonly since: string; readonly detail: string } | null;
  /** Here: the service's configuration may differ. */
  readonly configured: boolean;
}

export interface Measured {
  readonly channel: ChannelName;
  readonly backlog: number;
  readonly suspended: Suspended | null;
  readonly configured: boolean;
  /** When the oldest pending click was recorded. */
  readonly oldest: string | undefined;
  readonly settledPerMinute: number;
  readonly requestedPerMinute: number;
  readonly failuresInARow: number;
  /** ms since the epoch. */
  readonly now: number;
}

/** What is measured of a channel, put into relation (pure). */
export function lagOf(measured: Measured): ChannelLag {
  const { channel, configured, backlog, suspended, oldest, settledPerMinute, requestedPerMinute, failuresInARow, now } =
    measured;
  const age = oldest === undefined ? null : Math.max(0, Math.round((now - Date.parse(oldest)) / 1_000));
  return {
    channel,
    backlog,
    oldest_click_seconds: age,
    settled_per_minute: rounded(settledPerMinute),
    requested_per_minute: rounded(requestedPerMinute),
    drained_in_seconds: drainedIn(backlog, settledPerMinute - requestedPerMinute),
    failures_in_a_row: failuresInARow,
    suspended: suspended && { since: suspended.since, detail: suspended.detail },
    configured,
  };
}

function drainedIn(backlog: number, lessPerMinute: number): number | null {
  if (backlog === 0) return 0;
  return lessPerMinute > 0 ? Math.ceil((backlog / lessPerMinute) * 60) : null;
}

/** A tenth is as exact as five minutes are. */
function rounded(perMinute: number): number {
  return Math.round(perMinute * 10) / 10;
}

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

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
] as const;

/** In the largest two units that say something: `2 h 5 min`, `40 s`. */
export function duration(seconds: number): string {
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  const unit = UNITS[at];
  if (unit === undefined) return `${seconds} s`;
  const [name, size] = unit;
  const [nextName, nextSize] = UNITS[at + 1] ?? ["s", 1];
  const rest = Math.floor((seconds % size) / nextSize);
  return `${Math.floor(seconds / size)} ${name}${rest === 0 ? "" : ` ${rest} ${nextName}`}`;
}
