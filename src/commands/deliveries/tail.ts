import type { EventStore, Query } from "eventstore-lite";
import type { Event, Folded } from "../../../events/catalog.ts";
import { CHANNELS, type ChannelName } from "../../../events/channel.ts";
import { isSettled, requestedChannels, requestsDispatch, type LaneState } from "../../../projections/deliveries.ts";
import { OWING } from "../../delivery/request-of.ts";
import { STREAMS } from "../../log/event-log.ts";

/** Over which a rate is told: long enough for a pace of one a second, short enough to show what is changing now. */
const RATE_MS = 5 * 60_000;

/** Events read for one rate at the most, tens of milliseconds of work; a faster rate shows in a shorter time. */
const RATE_EVENTS_MAX = 10_000;

/** A time below which a rate says nothing, such as that of events that came in one append. */
const SPAN_MIN_MS = 1_000;

const MINUTE_MS = 60_000;

/** HTTP status of a network that asks for less: the circuit breaker does not count it. */
const TOO_MANY_REQUESTS = 429;

export interface ChannelTail {
  /** Dispatches that came to their end, a minute. */
  readonly settledPerMinute: number;
  /** Attempts that failed in a row, the last included; a network that asked for less did not fail. */
  readonly failuresInARow: number;
}

/** What the last outcomes of a channel tell. Reads nothing but the end of its stream. */
export async function readTail(store: EventStore<Event>, channel: ChannelName, now: number): Promise<ChannelTail> {
  const settled = new Set<number>();
  let failuresInARow = 0;
  let isRow = true;
  const minutes = await lookBack(store, { stream: STREAMS.delivery(channel) }, now, ({ type, data }) => {
    if (!("owed" in data)) return;
    if (type !== "DispatchFailed") settled.add(data.owed);
    if (type === "DispatchSkipped") return;
    if (type === "DispatchFailed" && data.status === TOO_MANY_REQUESTS) return;
    isRow &&= type === "DispatchFailed" || type === "DispatchInDoubt";
    if (isRow) failuresInARow++;
  });
  return { settledPerMinute: settled.size / minutes, failuresInARow };
}

/** Dispatches that came to be owed to each channel, a minute. Reads nothing but the end of the log. */
export async function readRequested(store: EventStore<Event>, now: number): Promise<ReadonlyMap<ChannelName, number>> {
  const owed = new Map<ChannelName, number>(CHANNELS.map((channel) => [channel, 0]));
  const types = [...OWING.clicks, ...OWING.direct];
  const minutes = await lookBack(store, { types }, now, (event) => {
    for (const channel of requestedChannels(event)) owed.set(channel, (owed.get(channel) ?? 0) + 1);
  });
  return new Map([...owed].map(([channel, count]) => [channel, count / minutes]));
}

/** Takes the last events, the newest first. Answers the minutes that they were told in: fewer where there are very many. */
async function lookBack(
  store: EventStore<Event>,
  query: Pick<Query, "stream" | "types">,
  now: number,
  take: (event: Folded) => void,
): Promise<number> {
  let taken = 0;
  let spanMs = 0;
  for await (const batch of store.readFolded({ ...query, backwards: true, limit: RATE_EVENTS_MAX })) {
    for (const event of batch) {
      spanMs = now - Date.parse(event.time);
      if (spanMs > RATE_MS) return RATE_MS / MINUTE_MS;
      take(event);
      taken++;
    }
  }
  return (taken < RATE_EVENTS_MAX ? RATE_MS : Math.max(SPAN_MIN_MS, spanMs)) / MINUTE_MS;
}

/** When the oldest click that is owed to the channel and not settled was recorded; undefined: there is none. */
export async function readOldestClick(
  store: EventStore<Event>,
  channel: ChannelName,
  lane: LaneState,
): Promise<string | undefined> {
  if (lane.owed === lane.settled) return undefined;
  const from = Math.max(1, Math.min(lane.low_watermark, ...lane.retries.keys()));
  for await (const batch of store.readFolded({ types: OWING.clicks, from })) {
    for (const event of batch)
      if (requestsDispatch(event, channel) && !isSettled(lane, event.position)) return event.time;
  }
  return undefined;
}
