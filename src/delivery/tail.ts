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
const RATE_MS = 5 * 60_000;

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

export interface ChannelTail {
  /** Dispatches that came to their end, a minute. */
  readonly settledPerMinute: number;
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
  let failuresInARow = 0;
  let isRow = true;
  const minutes = await lookBack(store, { stream: STREAMS.delivery(channel), ...tail }, now, (event) => {
    if (!isOutcome(event)) return;
    const { type, data } = event;
    for (const request of data.requests) {
      if (isFinal(type)) for (const source of positionsOf(request.sources)) settled.add(source);
      if (type === "DispatchSkipped") continue;
      if (type === "DispatchFailed" && "status" in request && request.status === TOO_MANY_REQUESTS) continue;
      isRow &&= type === "DispatchFailed" || type === "DispatchInDoubt";
      if (isRow) failuresInARow++;
    }
  });
  return { settledPerMinute: settled.size / minutes, failuresInARow };
}

/** Dispatches that were requested to each channel, a minute. Reads nothing but the end of the log. */
export async function readRequested(
  store: EventStore<Event>,
  now: number,
  { subscriptions = [], ...tail }: Tail & { readonly subscriptions?: readonly Subscription[] } = {},
): Promise<ReadonlyMap<ChannelName, number>> {
  const requested = new Map<ChannelName, number>(CHANNELS.map((channel) => [channel, 0]));
  const subscribed = subscriptions.flatMap((subscription) => subscription.types);
  const types = [...new Set([...REQUESTING.clicks, ...REQUESTING.direct, ...subscribed])];
  const count = (channel: ChannelName): void => void requested.set(channel, (requested.get(channel) ?? 0) + 1);
  const minutes = await lookBack(store, { types, ...tail }, now, (event) => {
    for (const channel of requestedChannels(event)) count(channel);
    if (isSubscribed(subscriptions, event)) count("webhook");
  });
  return new Map([...requested].map(([channel, count]) => [channel, count / minutes]));
}

/** Takes the last events, the newest first. Answers the minutes that they were recorded in: fewer where there are very many. */
async function lookBack(
  store: EventStore<Event>,
  { eventsMax = RATE_EVENTS_MAX, ...query }: Pick<Query, "stream" | "types"> & Tail,
  now: number,
  take: (event: Folded) => void,
): Promise<number> {
  let taken = 0;
  let spanMs = 0;
  for await (const batch of store.readFolded({ ...query, backwards: true, limit: eventsMax })) {
    for (const event of batch) {
      spanMs = now - Date.parse(event.time);
      if (spanMs > RATE_MS) return RATE_MS / MINUTE_MS;
      take(event);
      taken++;
    }
  }
  return (taken < eventsMax ? RATE_MS : Math.max(SPAN_MIN_MS, spanMs)) / MINUTE_MS;
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
