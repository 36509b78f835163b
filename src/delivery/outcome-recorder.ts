import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import type { OutcomeType, RequestOf } from "../../events/dispatches-requested-by-events.ts";
import { sourcesOf } from "../../events/position-ranges.ts";
import { type NewEvent, SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import type { AttemptOutcome } from "./attempt-outcome.ts";
import type { ChannelContext } from "./attempt-dispatches.ts";
import type { OutboxWindow, PendingDispatch } from "./outbox-window.ts";
import { nextTurn } from "../platform/work-in-time-slices.ts";

/**
 * Maximum number of dispatches that the network has answered and that are not recorded yet. After a kill they are sent
 * again, like those in flight.
 */
export const UNRECORDED_MAX = 64;

/**
 * Number of a channel's outcomes at which a round stops gathering and is written. While it is written, as many further
 * dispatches may be answered.
 */
export const ROUND_DISPATCHES = UNRECORDED_MAX / 2;

/**
 * Maximum number of dispatches whose outcomes share one append. Outcomes that arrive during an append go into the next
 * one.
 */
const APPEND_DISPATCHES_MAX = 1_000;

/**
 * Maximum number of requests in one outcome event. Each holds up to 2 KB of a network's error message and its share of
 * the positions, at most 20 bytes each: together well below the 256 KiB of an event.
 */
export const EVENT_REQUESTS_MAX = 64;

interface Entry {
  readonly lane: OutboxWindow;
  readonly items: readonly PendingDispatch[];
  readonly more: readonly NewEvent[];
  readonly resolve: () => void;
  readonly reject: (fault: unknown) => void;
}

/**
 * Creates a function that appends outcomes. It resolves when the outcomes are durable and the settled items have left
 * their lane (queue). If the append fails, it rejects, and the items keep their outcomes.
 */
export function createRecorder(
  context: ChannelContext,
  /** Recorder of outcomes that all dispatchers of a log share. */
  batchOutcomes: OutcomeBatching,
) {
  const { channel, lease, eventLog, projector, metrics } = context;
  let waiting: Entry[] = [];
  let isWriting = false;

  const write = async (entries: readonly Entry[]): Promise<void> => {
    const newEvents = [...toOutcomeEvents(channel.name, entries), ...entries.flatMap(({ more }) => more)];
    if (newEvents.length > 0) {
      const stream = STREAMS.delivery(channel.name);
      const appended = await lease.fenced((fence) => eventLog.append(stream, newEvents, SERVICE_METADATA, fence));
      const unrecorded = entries.flatMap(({ items }) => items.flatMap((item) => item.unrecorded ?? []));
      for (const [type, outcomes] of Map.groupBy(unrecorded, ({ type }) => type))
        metrics?.recorded(channel.name, type, outcomes.length);
      try {
        // Waits until the projections hold the outcomes. If the items left their lane earlier, a refill would read
        // their dispatches from the log again as pending.
        await projector.until(appended.last);
      } finally {
        for (const { lane, items } of entries) for (const item of items) settle(lane, item);
      }
    }
    for (const { resolve } of entries) resolve();
  };

  const writeNext = async (): Promise<void> => {
    const entries = waiting.slice(0, countNext(waiting));
    waiting = waiting.slice(entries.length);
    await write(entries).catch((fault: unknown) => {
      for (const { reject } of entries) reject(fault);
    });
  };

  const recording = { waiting: () => countDispatches(waiting), write: writeNext };

  const pump = async (): Promise<void> => {
    while (waiting.length > 0) await batchOutcomes(recording);
    isWriting = false;
  };

  return (lane: OutboxWindow, items: readonly PendingDispatch[], more: readonly NewEvent[]): Promise<void> =>
    new Promise((resolve, reject) => {
      waiting.push({ lane, items, more, resolve, reject });
      if (isWriting) return;
      isWriting = true;
      void pump();
    });
}

function countDispatches(entries: readonly Entry[]): number {
  return entries.reduce((sum, { items }) => sum + items.length, 0);
}

function countNext(entries: readonly Entry[]): number {
  let dispatches = 0;
  for (const [at, { items }] of entries.entries()) {
    dispatches += items.length;
    if (dispatches > APPEND_DISPATCHES_MAX) return Math.max(1, at);
  }
  return entries.length;
}

/**
 * Makes outcome events with the low watermark of their lane (queue of a channel). Only the last event has the new
 * watermark, because it counts the dispatches of all these events as settled.
 */
function toOutcomeEvents(channel: ChannelName, entries: readonly Entry[]): NewEvent[] {
  return [...Map.groupBy(entries, ({ lane }) => lane)].flatMap(([lane, ofLane]) => {
    const settled = new Set(ofLane.flatMap(({ items }) => items.filter(({ unrecorded }) => unrecorded !== undefined)));
    const events = groupByType(ofLane.flatMap(({ items }) => groupByOutcome(items)));
    const [before, after] = [lane.lowWatermark(NONE), lane.lowWatermark(settled)];
    return events.map(({ type, requests }, at) => {
      const low_watermark = at === events.length - 1 ? after : before;
      return { type, data: { channel, lane: lane.name, low_watermark, requests } } as NewEvent;
    });
  });
}

const NONE: ReadonlySet<PendingDispatch> = new Set();

interface Request {
  readonly type: OutcomeType;
  readonly request: RequestOf<OutcomeType>;
}

/**
 * Groups the dispatches of one request by outcome: dispatches with equal outcomes get one entry. Leaves out dispatches
 * that have no unrecorded outcome.
 */
function groupByOutcome(items: readonly PendingDispatch[]): Request[] {
  const same = new Map<string, { readonly outcome: AttemptOutcome; readonly positions: number[] }>();
  for (const { event, unrecorded: outcome } of items) {
    if (outcome === undefined) continue;
    // Dispatches with equal outcomes get one entry. Most requests carry a single dispatch, so there is nothing to
    // compare.
    const key = items.length === 1 ? "" : JSON.stringify(outcome);
    const known = same.get(key);
    if (known === undefined) same.set(key, { outcome, positions: [event.position] });
    else known.positions.push(event.position);
  }
  return [...same.values()].map(({ outcome: { type, request }, positions }) => {
    return { type, request: { sources: sourcesOf(positions), ...request } };
  });
}

/**
 * Groups requests, in the order in which they completed, into outcome events. Successive requests with the same type of
 * outcome share an event.
 */
function groupByType(requests: readonly Request[]) {
  const events: { readonly type: OutcomeType; readonly requests: RequestOf<OutcomeType>[] }[] = [];
  for (const { type, request } of requests) {
    const last = events.at(-1);
    if (last?.type === type && last.requests.length < EVENT_REQUESTS_MAX) last.requests.push(request);
    else events.push({ type, requests: [request] });
  }
  return events;
}

function settle(lane: OutboxWindow, item: PendingDispatch): void {
  const { unrecorded } = item;
  if (unrecorded === undefined) return;
  if (unrecorded.type === "DispatchFailed") lane.wait(item, Date.parse(unrecorded.request.retry_at));
  else lane.remove(item);
  delete item.unrecorded;
  item.attempts++;
}

interface Recording {
  /** Returns how many of the channel's answered dispatches wait to be recorded. */
  waiting(): number;
  /** Appends the channel's waiting outcomes. Never rejects. */
  write(): Promise<void>;
}

/**
 * Function that records a channel's outcomes with the next round of all channels. Resolves when everything in that
 * round is recorded.
 */
export type OutcomeBatching = (recording: Recording) => Promise<void>;

/**
 * Maximum number of event loop iterations in which a round gathers outcomes, so that answered dispatches reach the log
 * soon.
 */
export const GATHERING_ITERATIONS_MAX = 4;

/**
 * Lets all channels record in rounds, so that their outcomes share a transaction and its sync. A round begins when the
 * previous one has ended, and gathers while each event loop iteration adds outcomes, until a channel has `enough`.
 */
export function createOutcomeBatching(enough: number): OutcomeBatching {
  let last = Promise.resolve();
  let next: { readonly recordings: Recording[]; readonly ended: Promise<void> } | undefined;

  const run = async (recordings: readonly Recording[], before: Promise<void>): Promise<void> => {
    await before;
    const count = (): number => recordings.reduce((sum, { waiting }) => sum + waiting(), 0);
    for (let iteration = 0, counted = 0; iteration < GATHERING_ITERATIONS_MAX && count() > counted; iteration++) {
      counted = count();
      await nextTurn();
      if (recordings.some(({ waiting }) => waiting() >= enough)) break;
    }
    next = undefined;
    await Promise.all(recordings.map(({ write }) => write()));
  };

  return (recording) => {
    if (next === undefined) {
      const recordings: Recording[] = [];
      last = run(recordings, last);
      next = { recordings, ended: last };
    }
    next.recordings.push(recording);
    return next.ended;
  };
}
