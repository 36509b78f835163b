import type { Folded } from "../events/event-types-and-codec.ts";
import {
  CHANNELS,
  isWebhook,
  LANES,
  sortChannels,
  type ChannelName,
  type Lane,
  type WebhookChannel,
} from "../events/channel-and-lane-names.ts";
import {
  DISPATCHED_TYPES,
  isSubscribed,
  laneOf,
  REQUESTING,
  requestedChannels,
  requestsDispatch,
  subscriptionBy,
  type OutcomeType,
  type Subscription,
} from "../events/dispatches-requested-by-events.ts";
import { forEachPosition, positionsOf } from "../events/position-ranges.ts";
import {
  listEnded,
  noDeadLetters,
  retriedStatus,
  takeUp,
  type DeadLetters,
  type EndsUndelivered,
} from "./dead-letters.ts";
import type { Projection } from "./projection.ts";
import { quarterAt, type Quarters } from "./count-by-quarter-hour.ts";
import { msOf } from "./parse-log-times.ts";

/**
 * State of one lane (queue) of a channel. The pending dispatches themselves are events in the log; this state records
 * only which of them have ended. It stays small, no matter how many dispatches are pending.
 */
export interface LaneState {
  /** Number of dispatches that are requested and have no final outcome. */
  pending: number;
  /**
   * Position below which every dispatch requested in the lane (queue of a channel) has its final outcome, or waits in
   * `retries` for its next attempt.
   */
  low_watermark: number;
  /**
   * Dispatches requested at or above `low_watermark` that already have their final outcome, in the order of these
   * outcomes. Each is named by the position of the event that requested it.
   */
  above: Map<number, true>;
  /** Dispatches that failed and wait for their next attempt, by the position of the event that requested them. */
  retries: Map<number, Retry>;
  /**
   * Dispatches that may be in flight, or were when their dispatcher ended: the position of the requesting event, and
   * the fencing token of that dispatcher's lease.
   */
  claims: Map<number, number>;
  /**
   * Last restore of the log, while a dispatch requested before it is pending: another copy of the log may have
   * delivered that dispatch already. Null if no such dispatch is pending.
   */
  restored: RestoredLane | null;
  /**
   * Subscriptions of a webhook in the order of the log, back to the oldest one that requested a pending dispatch. Empty
   * for lanes other than a webhook's events.
   */
  subscriptions: Subscription[];
}

export interface RestoredLane {
  /** Position of the restore; dispatches requested below it may have been delivered. */
  below: number;
  /** Number of pending dispatches that were requested before the restore. */
  left: number;
}

export interface Retry {
  attempt: number;
  retry_at: string;
  /**
   * Time at which the first attempt that may have arrived ended, if known. A repeat is safe only while the network
   * still knows the dispatch's id.
   */
  doubtful_since?: string;
}

export interface ChannelState {
  lanes: Record<Lane, LaneState>;
  dispatched: number;
  skipped: number;
  /** Number of dispatches in doubt, without those retried or settled. */
  in_doubt: number;
  /** Number of dead letters, without those retried or discarded. */
  dead: number;
  letters: DeadLetters;
  /**
   * Counts of ended requests by quarter of an hour. Holds the newest {@link RECENT_QUARTERS} quarters in which a
   * request of the channel ended, and no entry for quarters without any.
   */
  recent: Quarters<RecentCounts>;
  /**
   * Circuit breaker of the channel after too many failed requests in a row: nothing is sent before a time. Null if
   * requests may be sent.
   */
  circuit: OpenCircuit | null;
  /**
   * Suspension of the channel: the network refuses all its requests, so its clicks wait. Null if the channel is not
   * suspended.
   */
  suspended: Suspended | null;
}

/** Numbers of dispatches that were delivered, and of requests that failed, were given up or are in doubt. */
export interface RecentCounts {
  delivered: number;
  failed: number;
}

/** Number of quarters of an hour that are counted for each channel: the 96 of a day, and the present one. */
const RECENT_QUARTERS = 97;

export interface OpenCircuit {
  failures: number;
  /** Time before which nothing is sent, ISO 8601. */
  until: string;
}

export interface Suspended {
  /** Time at which the network refused the channel, ISO 8601. */
  since: string;
  network: string;
  detail: string;
  /** Keyed hash of the credential that the network refused. */
  credential: string;
}

/** States of all channels. A channel that is not in {@link CHANNELS} has a state from the first event about it on. */
export type Deliveries = Record<ChannelName, ChannelState>;

export const deliveries: Projection<Deliveries> = {
  name: "deliveries",
  version: 14,
  types: DISPATCHED_TYPES,
  initial: () => Object.fromEntries(CHANNELS.map((name) => [name, emptyChannel()])) as Deliveries,
  evolve(state, event) {
    switch (event.type) {
      case "LinkClicked":
      case "ConversionRecorded":
      case "NotificationRequested":
      case "MessageRequested":
      case "ChannelTestRequested":
        request(state, event);
        break;
      case "DispatchRetryRequested":
        request(state, event);
        retry(openChannel(state, event.data.channel), event);
        break;
      case "DispatchClaimed": {
        const { channel, lane, token, sources } = event.data;
        const { claims } = openChannel(state, channel).lanes[lane];
        for (const source of positionsOf(sources)) claims.set(source, token);
        break;
      }
      case "DispatchFailed":
        fail(state, event);
        noteRecent(state, event, "failed", event.data.requests.length);
        break;
      case "DispatchSucceeded": {
        const delivered = settle(state, event);
        openChannel(state, event.data.channel).dispatched += delivered;
        noteRecent(state, event, "delivered", delivered);
        break;
      }
      case "DispatchSkipped":
        openChannel(state, event.data.channel).skipped += settle(state, event);
        break;
      case "DispatchInDoubt":
      case "DispatchAbandoned":
        openChannel(state, event.data.channel)[LEFT_AS[event.type]] += settleUndelivered(state, event);
        noteRecent(state, event, "failed", event.data.requests.length);
        break;
      case "DispatchDiscarded":
      case "DispatchSettled":
        close(openChannel(state, event.data.channel), event);
        break;
      case "CircuitOpened": {
        const { channel, failures, until } = event.data;
        openChannel(state, channel).circuit = { failures, until };
        break;
      }
      case "CircuitClosed":
        openChannel(state, event.data.channel).circuit = null;
        break;
      case "ChannelSuspended": {
        const { channel, network, detail, credential } = event.data;
        openChannel(state, channel).suspended ??= { since: event.time, network, detail, credential };
        break;
      }
      case "ChannelResumed":
        openChannel(state, event.data.channel).suspended = null;
        break;
      case "WebhookSubscribed":
      case "WebhookUnsubscribed":
        subscribe(state, event);
        break;
      case "LogRestored":
      case "LogLossAccepted":
        for (const { lanes } of Object.values(state)) for (const lane of LANES) restore(lanes[lane], event.position);
        break;
      default:
    }
    for (const name in state) if (isWebhook(name)) carry(openChannel(state, name).lanes.events, event);
    return state;
  },
};

const LEFT_AS = { DispatchInDoubt: "in_doubt", DispatchAbandoned: "dead" } as const;

function noteRecent(
  state: Deliveries,
  { time, data }: Folded<OutcomeType>,
  kind: keyof RecentCounts,
  number: number,
): void {
  if (number === 0) return;
  const none = () => ({ delivered: 0, failed: 0 });
  quarterAt(openChannel(state, data.channel).recent, msOf(time), none, RECENT_QUARTERS)[kind] += number;
}

/** Removes a dead letter, or a dispatch in doubt, from those that wait for an operator. */
function close(channel: ChannelState, { type, data }: Folded<"DispatchDiscarded" | "DispatchSettled">): void {
  const isDead = type === "DispatchDiscarded";
  channel[isDead ? "dead" : "in_doubt"]--;
  if (!isDead && data.as === "arrived") channel.dispatched++;
  channel.letters[isDead ? "dead" : "in_doubt"].delete(data.source);
}

function request(state: Deliveries, event: Folded): void {
  const lane = laneOf(event);
  for (const channel of requestedChannels(event)) openChannel(state, channel).lanes[lane].pending++;
}

function retry(channel: ChannelState, event: Folded<"DispatchRetryRequested">): void {
  channel[retriedStatus(event.data)]--;
  takeUp(channel.letters, event);
}

function openChannel(state: Deliveries, name: ChannelName): ChannelState {
  return (state[name] ??= emptyChannel());
}

function carry(lane: LaneState, event: Folded): void {
  if (isSubscribed(lane.subscriptions, event)) lane.pending++;
}

function subscribe(state: Deliveries, event: Folded): void {
  const next = subscriptionBy(event);
  if (next === undefined) return;
  const { channel, subscription } = next;
  const lane = openChannel(state, channel).lanes.events;
  lane.subscriptions.push(subscription);
  if (lane.pending > 0) return;
  forgetFormer(lane);
  // The subscription selects no events before its first position, so the dispatcher begins to read there.
  advance(lane, subscription.from);
}

/** Drops the former subscriptions of a webhook, because nothing that they requested is pending any more. */
function forgetFormer(lane: LaneState): void {
  if (lane.subscriptions.length > 1) lane.subscriptions = lane.subscriptions.slice(-1);
}

function restore(lane: LaneState, below: number): void {
  lane.restored = lane.pending === 0 ? null : { below, left: lane.pending };
}

export function pendingOf(channel: ChannelState): number {
  return LANES.reduce((sum, lane) => sum + channel.lanes[lane].pending, 0);
}

function fail(state: Deliveries, { time, data }: Folded<"DispatchFailed">): void {
  const lane = openChannel(state, data.channel).lanes[data.lane];
  let isNews = false;
  for (const { sources, attempt, retry_at, may_have_arrived } of data.requests) {
    // Latest time at which the attempt may have ended. The event is recorded after the attempt, later if the log was
    // unreachable. The attempt had also ended by `retry_at`, when the next attempt was due, so the earlier of both
    // times is used.
    const over = may_have_arrived && (time < retry_at ? time : retry_at);
    for (const source of positionsOf(sources)) {
      if (isSettled(lane, source)) continue;
      isNews = true;
      if (lane.claims.size > 0) lane.claims.delete(source);
      const since = lane.retries.get(source)?.doubtful_since ?? over;
      lane.retries.set(source, { attempt, retry_at, ...(since === undefined ? {} : { doubtful_since: since }) });
    }
  }
  if (isNews) advance(lane, data.low_watermark);
}

function settleUndelivered(state: Deliveries, event: EndsUndelivered): number {
  const { letters, lanes } = openChannel(state, event.data.channel);
  const lane = lanes[event.data.lane];
  listEnded(letters, event, (position) => !isSettled(lane, position));
  return settle(state, event);
}

/**
 * Settles the dispatches of an outcome, and returns how many of them have their first final outcome with this event.
 */
function settle(state: Deliveries, { data, position }: Folded<Exclude<OutcomeType, "DispatchFailed">>): number {
  const { channel, low_watermark, requests } = data;
  const { lanes, letters } = openChannel(state, channel);
  const lane = lanes[data.lane];
  const { taken_up } = letters;
  // The event moves the low watermark to this position, which settles all dispatches below it. Only dispatches from
  // this position on need an entry in `above`.
  const below = Math.max(lane.low_watermark, low_watermark);
  let settled = 0;
  for (const { sources } of requests) {
    forEachPosition(sources, (source) => {
      if (isSettled(lane, source)) return;
      settled++;
      if (lane.restored !== null && source < lane.restored.below && --lane.restored.left === 0) lane.restored = null;
      if (lane.retries.size > 0) lane.retries.delete(source);
      if (lane.claims.size > 0) lane.claims.delete(source);
      if (taken_up.size > 0) taken_up.delete(source);
      if (source >= below) lane.above.set(source, true);
    });
  }
  lane.pending -= settled;
  if (lane.pending === 0) forgetFormer(lane);
  // If no dispatch is pending, the lane is settled up to this event, even if the dispatcher's own watermark is lower.
  if (settled > 0) advance(lane, lane.pending === 0 ? position + 1 : low_watermark);
  return settled;
}

function advance(lane: LaneState, below: number): void {
  const from = lane.low_watermark;
  if (below <= from) return;
  lane.low_watermark = below;
  // Loops over the smaller of the set and the range of positions, because this runs for every dispatch.
  if (lane.above.size < below - from) {
    if (lane.above.size > 0) for (const source of lane.above.keys()) if (source < below) lane.above.delete(source);
  } else {
    for (let source = from; source < below; source++) lane.above.delete(source);
  }
}

/** True if the dispatch that was requested at `position` has its final outcome. */
export function isSettled(lane: LaneState, position: number): boolean {
  return position < lane.low_watermark ? !lane.retries.has(position) : lane.above.has(position);
}

/** Returns the types of events that may request dispatches in a lane (queue of a channel); possibly none. */
export function requestingTypes(lane: Lane, { subscriptions }: LaneState): readonly string[] {
  return lane === "events" ? [...new Set(subscriptions.flatMap(({ types }) => types))] : REQUESTING[lane];
}

/** True if an event of {@link requestingTypes} requests a dispatch to the channel in that lane. */
export function isRequested(channel: ChannelName, lane: Lane, { subscriptions }: LaneState, event: Folded): boolean {
  return lane === "events" ? isSubscribed(subscriptions, event) : requestsDispatch(event, channel);
}

/**
 * Earliest time, in ms since 1970, at which the dispatch of `event` may have arrived: the end of a recorded attempt, or
 * the event's time if a restored log may have lost attempts. Undefined if it certainly did not. No clock is read.
 */
export function uncertainSince({ retries, restored }: LaneState, { position, time }: Folded): number | undefined {
  const known = retries.size === 0 ? undefined : retries.get(position)?.doubtful_since;
  const since = known ?? (isOfBefore(restored, position) ? time : undefined);
  return since === undefined ? undefined : msOf(since);
}

/**
 * True if a holder of another lease than the one with `token` was about to make the dispatch, which may therefore have
 * arrived.
 */
export function isClaimedByOther({ claims }: LaneState, position: number, token: number): boolean {
  const claim = claims.size === 0 ? undefined : claims.get(position);
  return claim !== undefined && claim !== token;
}

/** True if the dispatch requested at a position was requested before the restore. */
export function isOfBefore(restored: RestoredLane | null, position: number): boolean {
  return restored !== null && position < restored.below;
}

function emptyChannel(): ChannelState {
  const lanes = { direct: emptyLane(), clicks: emptyLane(), events: emptyLane() };
  const counts = { dispatched: 0, skipped: 0, in_doubt: 0, dead: 0 };
  return { lanes, ...counts, letters: noDeadLetters(), recent: new Map(), circuit: null, suspended: null };
}

function emptyLane(): LaneState {
  const maps = { above: new Map(), retries: new Map(), claims: new Map() };
  return { pending: 0, low_watermark: 0, ...maps, restored: null, subscriptions: [] };
}

/** Returns the state of a channel. For a webhook that the log does not know, it is the state of a new one. */
export function findChannel(state: Deliveries, name: ChannelName): ChannelState {
  return state[name] ?? emptyChannel();
}

/**
 * Returns the names of the channels that every log has, of the other ads networks that were used, and of the webhooks
 * that carry events or have dispatches pending, dead or in doubt.
 */
export function listChannels(state: Deliveries): readonly ChannelName[] {
  const named = (Object.keys(state) as ChannelName[]).filter((name) => {
    const channel = findChannel(state, name);
    return (
      !isWebhook(name) || isCarrying(channel) || pendingOf(channel) > 0 || channel.dead > 0 || channel.in_doubt > 0
    );
  });
  return sortChannels([...CHANNELS, ...named]);
}

/** Returns all webhooks that the log knows. */
export function webhooksIn(state: Deliveries): readonly WebhookChannel[] {
  return Object.keys(state).filter(isWebhook);
}

function isCarrying({ lanes }: ChannelState): boolean {
  return (lanes.events.subscriptions.at(-1)?.types.length ?? 0) > 0;
}

/** Returns the channels of {@link listChannels} with their states. */
export function channelsOf(state: Deliveries): readonly [ChannelName, ChannelState][] {
  return listChannels(state).map((name) => [name, findChannel(state, name)]);
}
