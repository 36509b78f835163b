import type { DataOf, Folded } from "../events/catalog.ts";
import { CHANNELS, LANES, type ChannelName, type Lane } from "../events/channel.ts";
import type { Projection } from "./projection.ts";
import { RESTORES } from "./restores.ts";
import { msOf } from "./time.ts";

/**
 * One lane of one channel. The log is the outbox: what is owed is read from it, this only knows how far it is settled.
 * It stays as small as the dispatcher's window, however long the backlog.
 */
export interface LaneState {
  owed: number;
  settled: number;
  /** Everything owed below this position has its final outcome, or is in `retries`. */
  low_watermark: number;
  /** Positions at or above `low_watermark` that are settled already, in the order they were. */
  above: Map<number, true>;
  /** Owed positions that failed and wait for their next attempt. */
  retries: Map<number, Retry>;
  /**
   * The last restore, while something is pending that was owed before it: another life of the log may have delivered it.
   * Null once nothing is.
   */
  restored: RestoredLane | null;
}

export interface RestoredLane {
  /** Position of the restore. */
  below: number;
  /** How many of those below it are pending. */
  left: number;
}

export interface Retry {
  attempt: number;
  retry_at: string;
  /**
   * When the first attempt that may have arrived was over, as far as that is known: a repeat is safe only while the
   * network knows it.
   */
  doubtful_since?: string;
}

export interface ChannelState {
  lanes: Record<Lane, LaneState>;
  dispatched: number;
  skipped: number;
  in_doubt: number;
  /** Dead letters, less those taken up again or discarded. */
  dead: number;
  /** The network refuses the channel as a whole; what it is owed waits. */
  suspended: Suspended | null;
}

export interface Suspended {
  /** ISO 8601. */
  since: string;
  network: string;
  detail: string;
  /** Keyed hash of the credential that was refused. */
  credential: string;
}

export type Deliveries = Record<ChannelName, ChannelState>;

type Outcome = DataOf<"DispatchSucceeded" | "DispatchSkipped" | "DispatchInDoubt" | "DispatchAbandoned">;

export const deliveries: Projection<Deliveries> = {
  name: "deliveries",
  version: 6,
  types: [
    "LinkClicked",
    "NotificationRequested",
    "MessageRequested",
    "ChannelTestRequested",
    "DispatchRetryRequested",
    "DispatchSucceeded",
    "DispatchFailed",
    "DispatchSkipped",
    "DispatchInDoubt",
    "DispatchAbandoned",
    "DispatchDiscarded",
    "ChannelSuspended",
    "ChannelResumed",
    ...RESTORES,
  ],
  initial: () => ({ ads: emptyChannel(), chat: emptyChannel(), messaging: emptyChannel() }),
  evolve(state, event) {
    switch (event.type) {
      case "LinkClicked":
      case "NotificationRequested":
      case "MessageRequested":
      case "ChannelTestRequested":
        owe(state, event);
        break;
      case "DispatchRetryRequested":
        owe(state, event);
        state[event.data.channel].dead--;
        break;
      case "DispatchFailed": {
        const { channel, lane, owed, attempt, retry_at, low_watermark, may_have_arrived } = event.data;
        const failing = state[channel].lanes[lane];
        if (isSettled(failing, owed)) break;
        // A log that refused it for a while records it late; the next attempt was meant to come after it all the same.
        const over = event.time < retry_at ? event.time : retry_at;
        const since = failing.retries.get(owed)?.doubtful_since ?? (may_have_arrived && over);
        failing.retries.set(owed, { attempt, retry_at, ...(since === undefined ? {} : { doubtful_since: since }) });
        advance(failing, low_watermark);
        break;
      }
      case "DispatchSucceeded":
        if (settle(state, event.data, event.position)) state[event.data.channel].dispatched++;
        break;
      case "DispatchSkipped":
        if (settle(state, event.data, event.position)) state[event.data.channel].skipped++;
        break;
      case "DispatchInDoubt":
        if (settle(state, event.data, event.position)) state[event.data.channel].in_doubt++;
        break;
      case "DispatchAbandoned":
        if (settle(state, event.data, event.position)) state[event.data.channel].dead++;
        break;
      case "DispatchDiscarded":
        state[event.data.channel].dead--;
        break;
      case "ChannelSuspended": {
        const { channel, network, detail, credential } = event.data;
        state[channel].suspended ??= { since: event.time, network, detail, credential };
        break;
      }
      case "ChannelResumed":
        state[event.data.channel].suspended = null;
        break;
      case "LogRestored":
      case "LogLossAccepted":
        for (const channel of CHANNELS) for (const lane of LANES) restore(state[channel].lanes[lane], event.position);
        break;
      default:
    }
    return state;
  },
};

/** The channels to which this event owes a dispatch; empty for most. */
export function requestedChannels(event: Folded): readonly ChannelName[] {
  switch (event.type) {
    case "LinkClicked":
    case "ChannelTestRequested":
      return event.data.channels;
    case "NotificationRequested":
      return ["chat"];
    case "MessageRequested":
      return ["messaging"];
    case "DispatchRetryRequested":
      return [event.data.channel];
    default:
      return [];
  }
}

/** Whether an event owes that channel a dispatch. Asked for every event by every dispatcher. */
export function requestsDispatch(event: Folded, channel: ChannelName): boolean {
  return event.type === "LinkClicked"
    ? event.data.channels.includes(channel)
    : requestedChannels(event).includes(channel);
}

/** The lane in which what an event owes is dispatched. */
export function laneOf(event: Folded): Lane {
  return event.type === "LinkClicked" ? "clicks" : "direct";
}

function owe(state: Deliveries, event: Folded): void {
  const lane = laneOf(event);
  for (const channel of requestedChannels(event)) state[channel].lanes[lane].owed++;
}

function restore(lane: LaneState, below: number): void {
  const left = lane.owed - lane.settled;
  lane.restored = left === 0 ? null : { below, left };
}

/** What is owed and not settled. */
export function pendingOf(channel: ChannelState): number {
  return LANES.reduce((sum, lane) => sum + channel.lanes[lane].owed - channel.lanes[lane].settled, 0);
}

/** True when this outcome is the first for what it settles. */
function settle(state: Deliveries, outcome: Outcome, position: number): boolean {
  const lane = state[outcome.channel].lanes[outcome.lane];
  if (isSettled(lane, outcome.owed)) return false;
  lane.settled++;
  if (lane.restored !== null && outcome.owed < lane.restored.below && --lane.restored.left === 0) lane.restored = null;
  if (lane.retries.size > 0) lane.retries.delete(outcome.owed);
  // With nothing pending the lane is settled up to here, wherever the dispatcher's own account stands.
  advance(lane, lane.settled === lane.owed ? position + 1 : outcome.low_watermark);
  if (outcome.owed >= lane.low_watermark) lane.above.set(outcome.owed, true);
  return true;
}

function advance(lane: LaneState, below: number): void {
  const from = lane.low_watermark;
  if (below <= from) return;
  lane.low_watermark = below;
  // Whichever is less to look at: this runs for every dispatch.
  if (lane.above.size < below - from) {
    if (lane.above.size > 0) for (const owed of lane.above.keys()) if (owed < below) lane.above.delete(owed);
  } else {
    for (let owed = from; owed < below; owed++) lane.above.delete(owed);
  }
}

/** Whether what is owed at `position` has its final outcome. */
export function isSettled(lane: LaneState, position: number): boolean {
  return position < lane.low_watermark ? !lane.retries.has(position) : lane.above.has(position);
}

/**
 * Since when, in ms since 1970, what `event` owes may have arrived: an attempt of which the log tells was over then, or
 * none that a restored log has lost came before. Undefined: it certainly did not. No clock is asked.
 */
export function doubtfulSince(
  { retries, restored }: LaneState,
  { position, time }: Pick<Folded, "position" | "time">,
): number | undefined {
  const known = retries.size === 0 ? undefined : retries.get(position)?.doubtful_since;
  const since = known ?? (isOfBefore(restored, position) ? time : undefined);
  return since === undefined ? undefined : msOf(since);
}

/** Whether it was owed before the restore. */
export function isOfBefore(restored: RestoredLane | null, position: number): boolean {
  return restored !== null && position < restored.below;
}

function emptyChannel(): ChannelState {
  const lanes = { direct: emptyLane(), clicks: emptyLane() };
  return { lanes, dispatched: 0, skipped: 0, in_doubt: 0, dead: 0, suspended: null };
}

function emptyLane(): LaneState {
  return { owed: 0, settled: 0, low_watermark: 0, above: new Map(), retries: new Map(), restored: null };
}

/** All channels in their fixed order, with their states. */
export function channelsOf(state: Deliveries): readonly [ChannelName, ChannelState][] {
  return CHANNELS.map((name) => [name, state[name]]);
}
