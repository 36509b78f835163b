import type { Query } from "eventstore-lite";
import type { Folded, LogStore } from "../../events/event-types-and-codec.ts";
import {
  backlogLaneOf,
  type ChannelName,
  type Lane,
  type WebhookChannel,
} from "../../events/channel-and-lane-names.ts";
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
import {
  isFinal,
  isOutcome,
  findRequestedChannels,
  REQUESTING,
  type Subscription,
} from "../../events/dispatches-requested-by-events.ts";
import { positionsOf } from "../../events/position-ranges.ts";
import { STREAMS } from "../log/event-log.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/**
 * Time span over which a rate is measured, in ms: long enough for one event a second, short enough to show current
 * changes.
 */
export const RATE_MS = 5 * 60_000;

/** Time span of the newest rate, in ms. It shows whether a backlog grows now. */
const NEWEST_MS = 5_000;

/**
 * Maximum number of events read for one rate, tens of milliseconds of work. A faster rate is measured over a shorter
 * span.
 */
const RATE_EVENTS_MAX = 10_000;

/** Minimum span of a rate, in ms. Over a shorter span, such as that of events in one append, a rate means nothing. */
const SPAN_MIN_MS = 1_000;

const MINUTE_MS = 60_000;

/** HTTP status by which a network asks for fewer requests. The circuit breaker does not count it. */
const TOO_MANY_REQUESTS = 429;

/** Limits of a read backwards from the end of the log. */
export interface Tail {
  /** Last position that is read; absent: the log's last. */
  readonly to?: number;
  /**
   * Maximum number of events that are read for one figure; absent: {@link RATE_EVENTS_MAX} for a rate, no limit for
   * others.
   */
  readonly eventsMax?: number;
}

export interface DispatchRate {
  /** Dispatches a minute, over the last five minutes. */
  readonly perMinute: number;
  /** Dispatches a minute, over the last five seconds. */
  readonly newestPerMinute: number;
}

/**
 * Reads how many dispatches of a channel end per unit of time, and how many failures the channel has had since its last
 * success. Reads only the end of the channel's stream.
 */
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

/**
 * Reads how many dispatches a minute are requested to each channel. Omits channels without any. Reads only the end of
 * the log.
 */
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

/**
 * Reads the events of the last five minutes, newest first, and passes each to `take`. Returns a function that turns the
 * caller's counts into rates. If there are more than `eventsMax`, it reads only those, and rates are of a shorter time.
 */
async function lookBack(
  store: LogStore,
  { eventsMax = RATE_EVENTS_MAX, ...query }: Query & Tail,
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
 * Returns the time at which the oldest pending dispatch of a lane (queue of a channel) was requested. Undefined if none
 * is pending, or if none is among the events read. Without a limit, it reads on until it finds one.
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
  /** Time at which the oldest pending click (for a webhook: event) was recorded. */
  readonly oldest: string | undefined;
  /** Rate of dispatches that ended. */
  readonly settled: DispatchRate;
  readonly requested: DispatchRate;
  /** Number of requests that failed in a row, up to the last. A network that asked for fewer requests did not fail. */
  readonly failuresInARow: number;
  /** Time of the measurement, in ms since the epoch. */
  readonly now: number;
}

/** A channel's lag, as `deliveries lag --json` shows it. */
export type ChannelLag = ReturnType<typeof calculateLag>;

/** Computes a channel's lag from what was measured (pure). */
export function calculateLag(measured: Measured) {
  const { channel, configured, backlog, suspended, oldest, settled, requested, failuresInARow, now } = measured;
  const age = oldest === undefined ? null : Math.max(0, Math.round((now - Date.parse(oldest)) / 1_000));
  return {
    channel,
    /** Number of pending dispatches. */
    backlog,
    /** Age of the oldest pending click (for a webhook: event); null without one. */
    oldest_click_seconds: age,
    settled_per_minute: rounded(settled.perMinute),
    requested_per_minute: rounded(requested.perMinute),
    /** Seconds until the pending dispatches have ended; null if the backlog does not shrink at the present rate. */
    drained_in_seconds: suspended === null || backlog === 0 ? drainedIn(backlog, settled, requested) : null,
    failures_in_a_row: failuresInARow,
    suspended: suspended && { since: suspended.since, network: suspended.network, detail: suspended.detail },
    /** True if the channel has credentials in this process; the service may be configured differently. */
    configured,
  };
}

/**
 * Estimates when the pending dispatches have ended, at the rate of the last five minutes. Null without such a rate, or
 * while more dispatches are requested than end, over the last minutes and over the last seconds.
 */
function drainedIn(backlog: number, settled: DispatchRate, requested: DispatchRate): number | null {
  if (backlog === 0) return 0;
  const isGrowing = requested.perMinute > settled.perMinute && requested.newestPerMinute > settled.newestPerMinute;
  return isGrowing || settled.perMinute === 0 ? null : Math.ceil((backlog / settled.perMinute) * 60);
}

/** Rounds a rate to a tenth; five minutes give no more precision. */
function rounded(perMinute: number): number {
  return Math.round(perMinute * 10) / 10;
}

const NONE: DispatchRate = { perMinute: 0, newestPerMinute: 0 };

export interface LagSources {
  readonly store: LogStore;
  readonly deliveries: () => Deliveries;
  readonly isConfigured: (channel: ChannelName) => boolean;
  /** Limits on how much of the log's end is read; default: the same as for one rate. */
  readonly tail?: Tail;
}

/** Measures how far these channels are behind, from their states and the end of the log. */
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
