import type { EventType, Folded, Recorded } from "../../events/event-types-and-codec.ts";
import type { ChannelName, WebhookChannel } from "../../events/channel-and-lane-names.ts";
import {
  isOutcome,
  findRequestedChannels,
  narrowedTo,
  SUBSCRIBING,
  subscriptionBy,
  type Subscription,
  type OutcomeType,
  isFinal,
} from "../../events/dispatches-requested-by-events.ts";
import { positionsOf } from "../../events/position-ranges.ts";
import { STREAMS, eventAt, eventsAt, inOrder } from "../log/event-log.ts";
import type { Reading } from "./find-event.ts";

/**
 * Maps the position of each request for a dispatch, also of a retry, to the position of the dispatch's source event,
 * such as the click.
 */
export type Dispatches = ReadonlyMap<number, number>;

/** Outcome event, reduced to the dispatches that the reader asked for. */
export type DispatchOutcome = Folded<OutcomeType>;

/** An operator's decision about a dead letter or a dispatch in doubt, or the network's report that it lost one. */
export type LetterDecision = Folded<
  "DispatchRetryRequested" | "DispatchDiscarded" | "DispatchSettled" | "DispatchLost"
>;

const DECISIONS: readonly EventType[] = [
  "DispatchRetryRequested",
  "DispatchDiscarded",
  "DispatchSettled",
  "DispatchLost",
];

/**
 * True if the event is an operator's decision about a dispatch, or a network's late report. Its `source` is the position
 * of the event that was dispatched.
 */
export function isDecision<E extends { readonly type: EventType }>(event: E): event is E & LetterDecision {
  return DECISIONS.includes(event.type);
}

/**
 * Function that returns the channels to which an event requests dispatches: directly, or because a webhook was
 * subscribed to its type.
 */
export type FindChannels = (event: Folded) => readonly ChannelName[];

export async function readRequestedChannels({ store, to }: Reading): Promise<FindChannels> {
  const batches = await Array.fromAsync(store.readFolded({ types: SUBSCRIBING, to }));
  const webhooks = new Map<WebhookChannel, Subscription[]>();
  for (const { channel, subscription } of batches.flat().flatMap((event) => subscriptionBy(event) ?? [])) {
    webhooks.getOrInsertComputed(channel, () => []).push(subscription);
  }
  return (event) => findRequestedChannels(webhooks, event);
}

/**
 * Finds the source events, such as clicks, of the dispatches that this event is about, even if they were retried. An
 * outcome of several dispatches has several sources; most events have none.
 */
export async function sourcesOfEvent({ store }: Reading, findChannels: FindChannels, event: Recorded) {
  // An event about a dispatch may itself be dispatched, namely to a webhook. That is a separate dispatch.
  const own = findOwnChannels(findChannels, event).length > 0 ? [event] : [];
  if (isDecision(event)) return [await eventAt(store, event.data.source), ...own];
  if (!isOutcome(event)) return own;
  const requested = inOrder(event.data.requests.flatMap(({ sources }) => positionsOf(sources)));
  const { channel } = event.data;
  const positions = await Array.fromAsync(eventsAt(store, requested), (one) => positionOfSource(one, channel));
  return [...(await Array.fromAsync(eventsAt(store, inOrder(positions)))), ...own];
}

/**
 * Returns the channels to which this event itself is dispatched. This leaves out the channel on which a decision
 * retries an earlier event: there, the earlier event is dispatched.
 */
export function findOwnChannels(findChannels: FindChannels, event: Recorded): readonly ChannelName[] {
  const channels = findChannels(event);
  return isDecision(event) ? channels.filter((channel) => channel !== event.data.channel) : channels;
}

/**
 * Returns the position of the event that is dispatched to the channel because of this event: the earlier event if this
 * one is a decision to retry it there, else this event itself.
 */
function positionOfSource(event: Recorded, channel: ChannelName): number {
  return isDecision(event) && event.data.channel === channel ? event.data.source : event.position;
}

/**
 * Finds the dispatches of events: calls `found` for each operator's decision and each outcome, also of retries.
 * `sources`: the events' positions, with the channels to which each is dispatched.
 */
export async function findDispatches(
  reading: Reading,
  sources: ReadonlyMap<number, readonly ChannelName[]>,
  found: (event: LetterDecision | DispatchOutcome) => void,
): Promise<Dispatches> {
  const dispatches = new Map<number, number>();
  const byChannel = new Map<ChannelName, Set<number>>();
  const request = (channel: ChannelName, position: number, source: number): void => {
    dispatches.set(position, source);
    byChannel.getOrInsertComputed(channel, () => new Set()).add(position);
  };
  for (const [position, channels] of sources) for (const channel of channels) request(channel, position, position);
  for await (const batch of reading.store.readFolded({ types: DECISIONS, to: reading.to })) {
    for (const event of batch) {
      if (!isDecision(event) || !sources.has(event.data.source)) continue;
      const { type, data, position } = event;
      if (type === "DispatchRetryRequested") request(data.channel, position, data.source);
      found(event);
    }
  }
  for (const [channel, positions] of byChannel) await findOutcomes(reading, channel, positions, found);
  return dispatches;
}

/**
 * Reads the outcomes of dispatches in the channel's stream, from the first request to the end. It does not stop at a
 * final outcome, because a second one shows that a dispatch may have been sent twice.
 */
async function findOutcomes(
  { store, to, onProgress }: Reading,
  channel: ChannelName,
  dispatches: ReadonlySet<number>,
  found: (outcome: DispatchOutcome) => void,
): Promise<void> {
  let from = to;
  for (const position of dispatches) from = Math.min(from, position);
  for await (const batch of store.readFolded({ stream: STREAMS.delivery(channel), from, to })) {
    onProgress(batch.at(-1)?.position ?? from);
    for (const event of batch) {
      if (!isOutcome(event)) continue;
      const outcome = narrowedTo(event, dispatches);
      if (outcome !== undefined) found(outcome);
    }
  }
}

/** Outcomes of an event's dispatches to one channel. */
export interface ChannelOutcome {
  readonly channel: ChannelName;
  /**
   * The dispatch's outcomes, also those of failed attempts, and operators' decisions about it, in the order of the log.
   */
  readonly events: readonly Recorded[];
  /** False if the search stopped at its limit, so that later events may be missing. */
  readonly isWhole: boolean;
}

/**
 * Maximum number of outcomes read in a channel's stream to find that of one dispatch. The stream first holds the
 * outcomes of dispatches that were requested earlier.
 */
const OUTCOMES_READ_MAX = 1_000;

/**
 * Maximum number of decisions read to find those about one dispatch. Most are about other dispatches: the loss of a
 * single digest may add a thousand.
 */
const DECISIONS_READ_MAX = 100_000;

/** Reads the outcomes of an event's dispatches, by channel; empty for an event that requests none. */
export async function readOutcomes(reading: Reading, event: Recorded): Promise<readonly ChannelOutcome[]> {
  const channels = (await readRequestedChannels(reading))(event);
  if (channels.length === 0) return [];
  const decisions = await readDecisions(reading, event);
  return Promise.all(channels.map((channel) => outcomeOn(reading, event, channel, decisions)));
}

/** Reads the later decisions about the event's dispatches, or about the dispatch that it retries. */
async function readDecisions({ store, to }: Reading, event: Recorded) {
  const sources = isDecision(event) ? [event.position, event.data.source] : [event.position];
  const positions: number[] = [];
  let read = 0;
  const query = { types: DECISIONS, from: event.position + 1, to, limit: DECISIONS_READ_MAX };
  for await (const batch of store.readFolded(query)) {
    read += batch.length;
    for (const one of batch) if (isDecision(one) && sources.includes(one.data.source)) positions.push(one.position);
  }
  const decisions = await Array.fromAsync(eventsAt(store, positions));
  return { decisions: decisions.filter(isDecision), isWhole: read < DECISIONS_READ_MAX };
}

async function outcomeOn(
  reading: Reading,
  event: Recorded,
  channel: ChannelName,
  { decisions, isWhole }: Awaited<ReturnType<typeof readDecisions>>,
): Promise<ChannelOutcome> {
  const source = positionOfSource(event, channel);
  const decided = decisions.filter(({ data }) => data.channel === channel && data.source === source);
  const retries = decided.filter(({ type }) => type === "DispatchRetryRequested");
  const requested = [event.position, ...retries.map((retry) => retry.position)];
  const attempts = await Promise.all(requested.map((at) => readAttempts(reading, channel, at)));
  const events = [...decided, ...attempts.flatMap(({ events: some }) => some)];
  return {
    channel,
    events: events.sort((one, other) => one.position - other.position),
    isWhole: isWhole && attempts.every((one) => one.isWhole),
  };
}

/** Reads the attempts at the dispatch that was requested at a position, up to its final outcome. */
async function readAttempts({ store, to }: Reading, channel: ChannelName, requested: number) {
  const events: Recorded[] = [];
  const wanted = new Set([requested]);
  let read = 0;
  for await (const event of store.read({
    stream: STREAMS.delivery(channel),
    from: requested + 1,
    to,
    limit: OUTCOMES_READ_MAX,
  })) {
    read++;
    const own = isOutcome(event) ? narrowedTo(event, wanted) : undefined;
    if (own === undefined) continue;
    events.push(own);
    if (isFinal(own.type)) return { events, isWhole: true };
  }
  return { events, isWhole: read < OUTCOMES_READ_MAX };
}
