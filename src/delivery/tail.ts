import type { EventStore, Query } from "eventstore-lite";
import type { Event, Folded } from "../../events/catalog.ts";
import { CHANNELS, type ChannelName, type Lane } from "../../events/channel.ts";
import {
  isFinal,
  isOutcome,
  isSubscribed,
  REQUESTING,
  requestedChannels,
  type Subscription,
} from "../../events/dispatches.ts";
import { positionsOf } from "../../events/sources.ts";
import { isRequested, isSettled, requestingTypes, type LaneState } from "../../projections/deliveries.ts";
import { STREAMS } from "../log/event-log.ts";

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

/** How much was recorded a minute. */
export interface Rate {
  /** In the last five minutes. */
  readonly perMinute: number;
  /** In the last five seconds. */
  readonly newestPerMinute: number;
}

export interface ChannelTail {
  /** Dispatches that came to their end. */
  readonly settled: Rate;
  /** Requests that failed in a row, the last included; a network that asked for less did not fail. */
  readonly failuresInARow: number;
}

/** What the last outcomes of a channel say. Reads nothing but the end of its stream. */
export async function readTail(
  store: EventStore<Event>,
  channel: ChannelName,
  now: number,
  tail: Tail = {},
): Promise<ChannelTail> {
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

/** Dispatches that were requested to each channel. Reads nothing but the end of the log. */
export async function readRequested(
  store: EventStore<Event>,
  now: number,
  { subscriptions = [], ...tail }: Tail & { readonly subscriptions?: readonly Subscription[] } = {},
): Promise<ReadonlyMap<ChannelName, Rate>> {
  const requested = new Map(CHANNELS.map((channel) => [channel, { all: 0, newest: 0 }]));
  const subscribed = subscriptions.flatMap((subscription) => subscription.types);
  const types = [...new Set([...REQUESTING.clicks, ...REQUESTING.direct, ...subscribed])];
  const rateOf = await lookBack(store, { types, ...tail }, now, (event, isNewest) => {
    const channels = [...requestedChannels(event), ...(isSubscribed(subscriptions, event) ? ["webhook" as const] : [])];
    for (const channel of channels) {
      const count = requested.get(channel);
      if (count === undefined) continue;
      count.all += 1;
      if (isNewest) count.newest += 1;
    }
  });
  return new Map([...requested].map(([channel, { all, newest }]) => [channel, rateOf(all, newest)]));
}

/** Takes the last events, the newest first. Answers their rate by how many they are: where very many, of a shorter time. */
async function lookBack(
  store: EventStore<Event>,
  { eventsMax = RATE_EVENTS_MAX, ...query }: Pick<Query, "stream" | "types"> & Tail,
  now: number,
  take: (event: Folded, isNewest: boolean) => void,
): Promise<(all: number, newest: number) => Rate> {
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
  store: EventStore<Event>,
  channel: ChannelName,
  lane: Lane,
  state: LaneState,
  { to, eventsMax }: Tail = {},
): Promise<string | undefined> {
  if (state.pending === 0) return undefined;
  const from = Math.max(1, Math.min(state.low_watermark, ...state.retries.keys()));
  const bounds = { ...(to === undefined ? {} : { to }), ...(eventsMax === undefined ? {} : { limit: eventsMax }) };
  const types = requestingTypes(lane, state);
  for await (const batch of store.readFolded({ types, from, ...bounds })) {
    for (const event of batch)
      if (isRequested(channel, lane, state, event) && !isSettled(state, event.position)) return event.time;
  }
  return undefined;
}
