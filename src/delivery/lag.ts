import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { backlogLaneOf, type ChannelName } from "../../events/channel.ts";
import { pendingOf, type Deliveries, type Suspended } from "../../projections/deliveries.ts";
import { readOldestPending, readRequested, readTail, type Tail } from "./tail.ts";

/** How far a channel is behind, as `deliveries lag --json` has it. */
export interface ChannelLag {
  readonly channel: ChannelName;
  /** Pending dispatches. */
  readonly backlog: number;
  /** Of the oldest click among it, of the webhook the oldest event; null without one. */
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
  /** When the oldest pending click, or event of the webhook, was recorded. */
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

export interface LagSources {
  readonly store: EventStore<Event>;
  readonly deliveries: () => Deliveries;
  readonly isConfigured: (channel: ChannelName) => boolean;
  /** What of the log counts, and how much of it is read. */
  readonly tail?: Tail;
}

/** How far these channels are behind, by their states and the end of the log. */
export async function measureLags(
  { store, deliveries, isConfigured, tail = {} }: LagSources,
  channels: readonly ChannelName[],
  now: number,
): Promise<readonly ChannelLag[]> {
  const { subscriptions } = deliveries().webhook.lanes.events;
  const requested = await readRequested(store, now, { ...tail, subscriptions });
  const lags: ChannelLag[] = [];
  for (const channel of channels) {
    const rates = await readTail(store, channel, now, tail);
    const lane = backlogLaneOf(channel);
    const oldest = await readOldestPending(store, channel, lane, deliveries()[channel].lanes[lane], tail);
    const state = deliveries()[channel];
    const { suspended } = state;
    const requestedPerMinute = requested.get(channel) ?? 0;
    const backlog = pendingOf(state);
    const configured = isConfigured(channel);
    lags.push(lagOf({ channel, configured, backlog, suspended, oldest, ...rates, requestedPerMinute, now }));
  }
  return lags;
}
