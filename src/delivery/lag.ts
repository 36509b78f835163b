import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { backlogLaneOf, type ChannelName } from "../../events/channel.ts";
import { duration } from "../platform/duration.ts";
import { pendingOf, type Deliveries, type Suspended } from "../../projections/deliveries.ts";
import { readOldestPending, readRequested, readTail, type Rate, type Tail } from "./tail.ts";

/** How far a channel is behind, as `deliveries lag --json` has it. */
export interface ChannelLag {
  readonly channel: ChannelName;
  /** Pending dispatches. */
  readonly backlog: number;
  /** Of the oldest click among it, of the webhook the oldest event; null without one. */
  readonly oldest_click_seconds: number | null;
  readonly settled_per_minute: number;
  readonly requested_per_minute: number;
  /** Until nothing is pending; null: no estimate, since it does not shrink. */
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
  readonly settled: Rate;
  readonly requested: Rate;
  readonly failuresInARow: number;
  /** ms since the epoch. */
  readonly now: number;
}

/** What is measured of a channel, put into relation (pure). */
export function calculateLag(measured: Measured): ChannelLag {
  const { channel, configured, backlog, suspended, oldest, settled, requested, failuresInARow, now } = measured;
  const age = oldest === undefined ? null : Math.max(0, Math.round((now - Date.parse(oldest)) / 1_000));
  return {
    channel,
    backlog,
    oldest_click_seconds: age,
    settled_per_minute: rounded(settled.perMinute),
    requested_per_minute: rounded(requested.perMinute),
    drained_in_seconds: drainedIn(backlog, settled, requested),
    failures_in_a_row: failuresInARow,
    suspended: suspended && { since: suspended.since, detail: suspended.detail },
    configured,
  };
}

/** By the newest rate, which a burst of minutes ago does not distort; by that of minutes where it says nothing. */
function drainedIn(backlog: number, settled: Rate, requested: Rate): number | null {
  if (backlog === 0) return 0;
  const shrinking = [settled.newestPerMinute - requested.newestPerMinute, settled.perMinute - requested.perMinute].find(
    (perMinute) => perMinute > 0,
  );
  return shrinking === undefined ? null : Math.ceil((backlog / shrinking) * 60);
}

/** When nothing is pending any more, or why there is no estimate. */
export function drainInWords({
  drained_in_seconds: seconds,
  suspended,
  settled_per_minute: settled,
}: ChannelLag): string {
  if (seconds !== null) return duration(seconds);
  if (suspended !== null) return "not while suspended";
  return settled === 0 ? "nothing settled" : "growing";
}

/** A tenth is as exact as five minutes are. */
function rounded(perMinute: number): number {
  return Math.round(perMinute * 10) / 10;
}

const NONE: Rate = { perMinute: 0, newestPerMinute: 0 };

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
    const backlog = pendingOf(state);
    const configured = isConfigured(channel);
    lags.push(
      calculateLag({
        channel,
        configured,
        backlog,
        suspended,
        oldest,
        ...rates,
        requested: requested.get(channel) ?? NONE,
        now,
      }),
    );
  }
  return lags;
}
