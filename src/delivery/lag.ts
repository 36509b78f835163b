import type { Query } from "eventstore-lite";
import type { Folded, LogStore } from "../../events/catalog.ts";
import { backlogLaneOf, type ChannelName, type Lane, type WebhookChannel } from "../../events/channel.ts";
import { formatDuration } from "../platform/format-duration.ts";
import {
  findChannel,
  pendingOf,
  type Deliveries,
  type Suspended,
  isRequested,
  isSettled,
  requestingTypes,
  type LaneState,
  webhooksIn,
} from "../../projections/deliveries.ts";
import { isFinal, isOutcome, findRequestedChannels, REQUESTING, type Subscription } from "../../events/dispatches.ts";
import { positionsOf } from "../../events/sources.ts";
import { STREAMS } from "../log/event-log.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/** Over which a rate is measured: long enough for a pace of one a second, short enough to show what is changing now. */
export const RATE_MS = 5 * 60_000;

/** Over which the newest rate is measured: a burst that ended seconds ago is no longer in it. */
export const NEWEST_MS = 5_000;

/** Events read for one rate at the most, tens of milliseconds of work; a faster rate shows in a shorter time. */
const RATE_EVENTS_MAX = 10_000;

/** A time below which a rate says nothing, such as that of events that came in one append. */
const SPAN_MIN_MS = 1_000;

const MINUTE_MS = 60_000;

/** HTTP status of a network that asks for less: the circuit breaker does not count it. */
const TOO_MANY_REQUESTS = 429;

/** Which end of the log is looked at. */
export interface Tail {
  /** Its last position; absent: that of the log. */
  readonly to?: number;
  /** How many events are read for one figure at the most; absent: {@link RATE_EVENTS_MAX} for a rate. */
  readonly eventsMax?: number;
}

export interface DispatchRate {
  /** In the last five minutes. */
  readonly perMinute: number;
  /** In the last five seconds. */
  readonly newestPerMinute: number;
}

/** What the last outcomes of a channel say. Reads nothing but the end of its stream. */
export async function readTail(store: LogStore, channel: ChannelName, now: number, tail: Tail = {}) {
  const settled = new Set<number>();
  const newest = new Set<number>();
  let failuresInARow = 0;
  let isRow = true;
  const rateOf = await lookBack(store, { stream: STREAMS.delivery(channel), ...tail }, now, (event, isNewest) => {
    if (!isOutcome(event)) return;
    const { type, data } = event;
    for (const request of data.requests) {
      if (isFinal(type)) {
        for (const source of positionsOf(request.sources)) {
          settled.add(source);
          if (isNewest) newest.add(source);
        }
      }
      if (type === "DispatchSkipped") continue;
      if (type === "DispatchFailed" && "status" in request && request.status === TOO_MANY_REQUESTS) continue;
      isRow &&= type === "DispatchFailed" || type === "DispatchInDoubt";
      if (isRow) failuresInARow++;
    }
  });
  return { settled: rateOf(settled.size, newest.size), failuresInARow };
}

/** Dispatches that were requested to each channel; of none where nothing was. Reads nothing but the end of the log. */
export async function readRequested(
  store: LogStore,
  now: number,
  { webhooks = new Map(), ...tail }: Tail & { webhooks?: ReadonlyMap<WebhookChannel, readonly Subscription[]> } = {},
): Promise<ReadonlyMap<ChannelName, DispatchRate>> {
  const requested = new Map<ChannelName, { all: number; newest: number }>();
  const subscribed = [...webhooks.values()].flat().flatMap((subscription) => subscription.types);
  const types = [...new Set([...REQUESTING.clicks, ...REQUESTING.direct, ...subscribed])];
  const rateOf = await lookBack(store, { types, ...tail }, now, (event, isNewest) => {
    for (const channel of findRequestedChannels(webhooks, event)) {
      const { all, newest } = requested.get(channel) ?? { all: 0, newest: 0 };
      requested.set(channel, { all: all + 1, newest: newest + Number(isNewest) });
    }
  });
  return new Map([...requested].map(([channel, { all, newest }]) => [channel, rateOf(all, newest)]));
}

/** Takes the last events, the newest first. Answers their rate by how many they are: where very many, of a shorter time. */
async function lookBack(
  store: LogStore,
  { eventsMax = RATE_EVENTS_MAX, ...query }: Pick<Query, "stream" | "types"> & Tail,
  now: number,
  take: (event: Folded, isNewest: boolean) => void,
): Promise<(all: number, newest: number) => DispatchRate> {
  const rateIn = (ms: number) => (all: number, newest: number) => ({
    perMinute: (all * MINUTE_MS) / ms,
    newestPerMinute: (newest * MINUTE_MS) / Math.min(ms, NEWEST_MS),
  });
  let taken = 0;
  let spanMs = 0;
  for await (const batch of store.readFolded({ ...query, backwards: true, limit: eventsMax })) {
    for (const event of batch) {
      spanMs = now - Date.parse(event.time);
      if (spanMs > RATE_MS) return rateIn(RATE_MS);
      take(event, spanMs <= NEWEST_MS);
      taken++;
    }
  }
  return rateIn(taken < eventsMax ? RATE_MS : Math.max(SPAN_MIN_MS, spanMs));
}

/**
 * When the oldest of what is pending in a lane of the channel was recorded; undefined: there is none, or none among the
 * events that were read. Without a bound it reads until it finds it.
 */
export async function readOldestPending(
  store: LogStore,
  channel: ChannelName,
  lane: Lane,
  state: LaneState,
  { to, eventsMax }: Tail = {},
): Promise<string | undefined> {
  if (state.pending === 0) return undefined;
  const from = Math.max(1, Math.min(state.low_watermark, ...state.retries.keys()));
  const bounds = omitUndefined({ to, limit: eventsMax });
  const types = requestingTypes(lane, state);
  for await (const batch of store.readFolded({ types, from, ...bounds })) {
    for (const event of batch)
      if (isRequested(channel, lane, state, event) && !isSettled(state, event.position)) return event.time;
  }
  return undefined;
}

export interface Measured {
  readonly channel: ChannelName;
  readonly backlog: number;
  readonly suspended: Suspended | null;
  readonly configured: boolean;
  /** When the oldest pending click, or event of a webhook, was recorded. */
  readonly oldest: string | undefined;
  /** Dispatches that came to their end. */
  readonly settled: DispatchRate;
  readonly requested: DispatchRate;
  /** Requests that failed in a row, the last included; a network that asked for less did not fail. */
  readonly failuresInARow: number;
  /** ms since the epoch. */
  readonly now: number;
}

/** How far a channel is behind, as `deliveries lag --json` has it. */
export type ChannelLag = ReturnType<typeof calculateLag>;

/** What is measured of a channel, put into relation (pure). */
export function calculateLag(measured: Measured) {
  const { channel, configured, backlog, suspended, oldest, settled, requested, failuresInARow, now } = measured;
  const age = oldest === undefined ? null : Math.max(0, Math.round((now - Date.parse(oldest)) / 1_000));
  return {
    channel,
    /** Pending dispatches. */
    backlog,
    /** Of the oldest click among it, of a webhook the oldest event; null without one. */
    oldest_click_seconds: age,
    settled_per_minute: rounded(settled.perMinute),
    requested_per_minute: rounded(requested.perMinute),
    /** Until nothing is pending; null: no estimate, since it does not shrink. */
    drained_in_seconds: drainedIn(backlog, settled, requested),
    failures_in_a_row: failuresInARow,
    suspended: suspended && { since: suspended.since, detail: suspended.detail },
    /** Here: the service's configuration may differ. */
    configured,
  };
}

/** By the newest rate, which a burst of minutes ago does not distort; by that of minutes where it says nothing. */
function drainedIn(backlog: number, settled: DispatchRate, requested: DispatchRate): number | null {
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
  if (seconds !== null) return formatDuration(seconds);
  if (suspended !== null) return "not while suspended";
  return settled === 0 ? "nothing settled" : "growing";
}

/** A tenth is as exact as five minutes are. */
function rounded(perMinute: number): number {
  return Math.round(perMinute * 10) / 10;
}

const NONE: DispatchRate = { perMinute: 0, newestPerMinute: 0 };

export interface LagSources {
  readonly store: LogStore;
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
  const webhooks = new Map(
    webhooksIn(deliveries()).map((name) => [name, findChannel(deliveries(), name).lanes.events.subscriptions]),
  );
  const requested = await readRequested(store, now, { ...tail, webhooks });
  const lags: ChannelLag[] = [];
  for (const channel of channels) {
    const rates = await readTail(store, channel, now, tail);
    const lane = backlogLaneOf(channel);
    const oldest = await readOldestPending(store, channel, lane, findChannel(deliveries(), channel).lanes[lane], tail);
    const state = findChannel(deliveries(), channel);
    const known = { configured: isConfigured(channel), backlog: pendingOf(state), suspended: state.suspended, oldest };
    lags.push(calculateLag({ channel, ...known, ...rates, requested: requested.get(channel) ?? NONE, now }));
  }
  return lags;
}
