import type { Recorded, LogStore } from "../../events/event-types-and-codec.ts";
import type { ChannelName, Lane } from "../../events/channel-and-lane-names.ts";
import { uncertainSince, isRequested, isSettled, type LaneState } from "../../projections/deliveries.ts";
import type { AttemptOutcome } from "./attempt-outcome.ts";

/**
 * Maximum number of events that a lane (queue of a channel) reads from the log at once. A lane reads when half of its
 * {@link WINDOW_DISPATCHES_MAX} places for pending dispatches are free, so one chunk usually fills them.
 */
const CHUNK_EVENTS = 500;

/**
 * Maximum number of chunks kept for the lanes (queues of channels) that need the same event types. It is enough for
 * channels that progress about equally fast.
 */
const KEPT_CHUNKS = 4;

/** Chunk of the log: its events that request dispatches in one lane (queue), to any channel. */
export interface Chunk {
  readonly events: readonly Recorded[];
  /** Position at which the next chunk begins. */
  readonly next: number;
  /** True if the log held no more events when the chunk was read. */
  readonly isLast: boolean;
}

/** Query for a chunk: events of these types between two positions; without `to` up to the end of the log. */
interface ChunkQuery {
  readonly to?: number;
  readonly types: readonly string[];
  readonly from: number;
}

/** Reads the log once for all lanes (queues of channels) that need events of the same types at about the same time. */
export type OutboxReader = ReturnType<typeof createOutboxReader>;

interface KeptChunk {
  readonly from: number;
  readonly reading: Promise<Chunk>;
  /** Position at which the next chunk begins; Infinity until this chunk is read. */
  next: number;
}

export function createOutboxReader(store: LogStore) {
  /** Chunks kept in memory by their event types, the newest first. */
  const kept = new Map<string, readonly KeptChunk[]>();

  const readOn = (key: string, query: ChunkQuery): Promise<Chunk> => {
    const { from } = query;
    const reading = readChunk(store, query);
    const chunk: KeptChunk = { from, reading, next: Infinity };
    const others = () => (kept.get(key) ?? []).filter((other) => other !== chunk);
    kept.set(key, [chunk, ...others()].slice(0, KEPT_CHUNKS));
    const forget = (): void => void kept.set(key, others());
    reading.then(({ next }) => (next === from ? forget() : (chunk.next = next)), forget);
    return reading;
  };

  return {
    /** Drops the kept chunks, because some of their events were erased. */
    forget(): void {
      kept.clear();
    },
    async read(query: ChunkQuery): Promise<Chunk> {
      const { types, from, to } = query;
      // Chunks read without `to` are kept apart, because they may hold events after another lane's `to`.
      const key = `${to === undefined ? "all" : "up to an end"} ${types.join()}`;
      const known = kept.get(key)?.find((chunk) => holds(chunk, from));
      if (known === undefined) return readOn(key, query);
      const { events, next } = await known.reading;
      // The chunk was read for another lane, so it may begin with events before `from`. It is not marked as the last
      // one, because the log may have grown since it was read.
      const beyond = from === known.from ? events : events.filter(({ position }) => position >= from);
      return { events: beyond, next: Math.max(from, next), isLast: false };
    },
  };
}

/**
 * True if a kept chunk contains the position. A chunk still being read can only be shared from its start, because its
 * end is unknown.
 */
function holds({ from, next }: KeptChunk, position: number): boolean {
  return next === Infinity ? position === from : from <= position && position < next;
}

async function readChunk(store: LogStore, { from, ...query }: ChunkQuery): Promise<Chunk> {
  const events: Recorded[] = [];
  for await (const event of store.read({ ...query, from, limit: CHUNK_EVENTS })) events.push(event);
  const last = events.at(-1);
  return { events, next: last === undefined ? from : last.position + 1, isLast: events.length < CHUNK_EVENTS };
}

/**
 * Maximum number of dispatches that a lane (queue of a channel) holds ready: as many as one request or digest takes.
 */
export const WINDOW_DISPATCHES_MAX = 1_000;

/**
 * Maximum number of dispatches that a lane (queue of a channel) holds in memory. It is larger than what is sent at
 * once, so that dispatches that wait for a retry leave room for others.
 */
const HELD_DISPATCHES_MAX = 4 * WINDOW_DISPATCHES_MAX;

/** One requested dispatch that is not settled yet. */
export interface PendingDispatch {
  /** Event that requests the dispatch, as last read, so without data that was erased since. */
  event: Recorded;
  /** Number of attempts made at the dispatch so far. */
  attempts: number;
  /** Earliest time of the next attempt, in ms since the epoch; set by {@link OutboxWindow.wait}. */
  notBefore: number;
  inFlight: boolean;
  /** Outcome of the last attempt, until it is in the log. */
  unrecorded?: AttemptOutcome;
}

export function isTest({ event }: PendingDispatch): boolean {
  return event.type === "ChannelTestRequested";
}

/** Window of a lane (queue of a channel): a bounded part of the lane's pending dispatches, read from the log. */
export type OutboxWindow = ReturnType<typeof openOutboxWindow>;

interface OutboxWindowDeps {
  readonly store: LogStore;
  readonly channel: ChannelName;
  readonly name: Lane;
  readonly state: () => LaneState;
  /**
   * Reads the next events that may request dispatches in the lane. For events of webhooks, it reads no further than the
   * folded `state`.
   */
  readonly read: (from: number) => Promise<Chunk>;
  /**
   * True if an event must wait while an earlier event of its stream is pending. Waiting events fill the window on
   * purpose: without that bound, too many later dispatches would be settled before them.
   */
  readonly isInOrder: boolean;
  /**
   * Screens an item: returns its outcome if no request is to be made, undefined if it is to be sent. Default: all are
   * sent.
   */
  readonly screen?: ((item: PendingDispatch) => AttemptOutcome | undefined) | undefined;
}

/**
 * Maximum time in ms for which an item that needs no request waits for others, so that one event records them together.
 * One event for each item would double the log if a filter excludes most events.
 */
const SCREENED_WAIT_MS = 1_000;

/** Opens the window of a lane (queue of a channel), starting from the dispatches that the log says are settled. */
export function openOutboxWindow(deps: OutboxWindowDeps) {
  const { name, state } = deps;
  const items = createPending(deps);
  const unread = createUnread(deps);
  let isOutdated = false;

  return {
    name,
    state,
    /**
     * Returns the earliest time at which the dispatch may have arrived, as {@link uncertainSince} does. For an
     * operator's retry, it also counts the attempts before the retry.
     */
    uncertainSince({ event }: PendingDispatch): number | undefined {
      const before =
        name === "direct" && event.type === "DispatchRetryRequested" ? event.data.doubtful_since : undefined;
      return before === undefined ? uncertainSince(state(), event) : Date.parse(before);
    },
    /**
     * Reads dispatches from the log until the window is full or the log ends. Does nothing if the window has no room
     * and the log has not grown.
     */
    async fill(now: number): Promise<void> {
      if (isOutdated) {
        items.clear();
        unread.rewind();
      }
      isOutdated = false;
      await unread.resume(items.admit);
      // Reads more events only when half of the window is free, because a read for each settled item would cost as much
      // as a dispatch.
      if (items.room(now) >= WINDOW_DISPATCHES_MAX / 2) await unread.readOn(items.admit, () => items.room(now));
    },
    /** The dispatcher calls this after appends that may request a dispatch in this lane (queue of a channel). */
    notice: unread.notice,
    /** Empties the window after a rebuild or an erasure, so that it is read again. */
    reopen(): void {
      isOutdated = true;
    },
    /**
     * Returns the oldest items that may be sent now and that `wanted` accepts, at most `max`. Returns no item that was
     * read before an erasure.
     */
    ready: (now: number, max: number, wanted?: (item: PendingDispatch) => boolean): readonly PendingDispatch[] =>
      isOutdated ? [] : items.ready(now, max, wanted),
    /**
     * Returns the items that the filter excludes, once one of them has waited long enough for others to share its
     * event.
     */
    screened: items.screened,
    /** Postpones the item until `until`, ms since the epoch. */
    wait: items.wait,
    /** Returns the time at which the next item is due, in ms since the epoch; undefined if none waits. */
    nextDue: items.nextDue,
    /** Removes an item whose outcome is durably in the log. */
    remove: items.remove,
    /**
     * Returns the position below which every dispatch is settled or waits for its retry, if the dispatches in `some`
     * are counted as settled.
     */
    lowWatermark: (some: ReadonlySet<PendingDispatch>): number => items.firstUnsettledBeside(some) ?? unread.readFrom(),
  };
}

/** Creates the reader of the log's events that the lane (queue of a channel) does not hold in memory yet. */
function createUnread({ store, channel, name, state, read }: OutboxWindowDeps) {
  let readFrom: number;
  /**
   * True if the log may hold events that were not yet read into the window of pending dispatches: after the start,
   * after an append, or because the window was full.
   */
  let more: boolean;
  /**
   * Positions of events before `readFrom` whose dispatches wait for a retry. Reading from `readFrom` on would miss
   * them, so each is read singly after a start or a reset of the pending dispatches; then this list is empty.
   */
  let waiting: number[];

  const rewind = (): void => {
    readFrom = Math.max(1, state().low_watermark);
    more = true;
    waiting = [...state().retries.keys()].filter((position) => position < readFrom).sort((a, b) => a - b);
  };
  rewind();

  return {
    readFrom: () => readFrom,
    rewind,
    notice(): void {
      more = true;
    },
    async resume(admit: (event: Recorded) => void): Promise<void> {
      for (const position of waiting) {
        for await (const event of store.read({ from: position, to: position })) {
          if (state().retries.has(position)) admit(event);
        }
      }
      waiting = [];
    },
    async readOn(admit: (event: Recorded) => void, room: () => number): Promise<void> {
      while (more && room() > 0) {
        more = false;
        const { events, next, isLast } = await read(readFrom).catch((fault: unknown) => {
          more = true;
          throw fault;
        });
        const taken = events.slice(0, room());
        const isWhole = taken.length === events.length;
        readFrom = isWhole ? next : (taken.at(-1)?.position ?? readFrom - 1) + 1;
        for (const event of taken)
          if (isRequested(channel, name, state(), event) && !isSettled(state(), event.position)) admit(event);
        more ||= !isLast || !isWhole;
      }
    },
  };
}

/** Creates the content of the window: pending dispatches in the order of the log. */
function createPending({ state, isInOrder, screen }: OutboxWindowDeps) {
  const items = new Map<number, PendingDispatch>();
  /**
   * Items that are kept when the window is emptied, because the log does not have their whole state: they are in
   * flight, or the log refused their outcome. Each returns when the log is read up to its position.
   */
  const carriedOver = new Map<number, PendingDispatch>();
  /** Items of the window that wait for the time of their next attempt. */
  const waiting = new Set<PendingDispatch>();
  const screened = createScreened(screen);

  /** Returns the items that may be sent next: all or, with `isInOrder`, the oldest of each stream. */
  const heads = (): Iterable<PendingDispatch> => {
    const toSend = screened.without(items.values());
    return isInOrder ? oldestOfStreams(toSend) : toSend;
  };

  return {
    /** Returns how many more items the window may hold. Items that wait count only toward the memory limit. */
    room(now: number): number {
      for (const item of waiting) if (item.notBefore <= now) waiting.delete(item);
      return Math.min(WINDOW_DISPATCHES_MAX - (items.size - waiting.size), HELD_DISPATCHES_MAX - items.size);
    },
    clear(): void {
      for (const [position, item] of items) {
        const isRefused = item.unrecorded !== undefined && !screened.items.has(item);
        if (item.inFlight || isRefused) carriedOver.set(position, item);
      }
      items.clear();
      waiting.clear();
      screened.items.clear();
    },
    wait(item: PendingDispatch, until: number): void {
      item.notBefore = until;
      waiting.add(item);
    },
    admit(event: Recorded): void {
      const { position } = event;
      const retry = state().retries.get(position);
      const notBefore = retry === undefined ? 0 : Date.parse(retry.retry_at);
      const known = carriedOver.get(position);
      carriedOver.delete(position);
      const item = known ?? { event, attempts: retry?.attempt ?? 0, notBefore, inFlight: false };
      item.event = event;
      items.set(position, item);
      if (known === undefined) screened.admit(item);
      if (item.notBefore > 0) waiting.add(item);
    },
    ready(
      now: number,
      max: number,
      wanted: (item: PendingDispatch) => boolean = () => true,
    ): readonly PendingDispatch[] {
      const found: PendingDispatch[] = [];
      for (const item of heads()) {
        if (found.length >= max) break;
        if (!item.inFlight && item.notBefore <= now && wanted(item)) found.push(item);
      }
      return found;
    },
    screened: screened.due,
    nextDue(now: number): number | undefined {
      const due = Math.min(earliestDue(heads(), now), screened.nextDue(now));
      return due === Infinity ? undefined : due;
    },
    remove(item: PendingDispatch): void {
      const { position } = item.event;
      items.delete(position);
      waiting.delete(item);
      screened.items.delete(item);
      carriedOver.delete(position);
    },
    /**
     * Returns the position of the oldest item that is neither in `some` nor waiting for its retry. The items are in the
     * order of the log.
     */
    firstUnsettledBeside(some: ReadonlySet<PendingDispatch>): number | undefined {
      const { retries } = state();
      for (const [position, item] of items) if (!some.has(item) && !retries.has(position)) return position;
      return undefined;
    },
  };
}

/** Creates the set of pending dispatches that the filter excludes. They need no request, and no other waits for them. */
function createScreened(screen: OutboxWindowDeps["screen"]) {
  const items = new Set<PendingDispatch>();
  return {
    items,
    admit(item: PendingDispatch): void {
      const outcome = screen?.(item);
      if (outcome === undefined) return;
      item.unrecorded = outcome;
      item.notBefore = Date.parse(item.event.time) + SCREENED_WAIT_MS;
      items.add(item);
    },
    without: (all: MapIterator<PendingDispatch>): Iterable<PendingDispatch> =>
      items.size === 0 ? all : all.filter((item) => !items.has(item)),
    /**
     * Returns all pending dispatches that the filter excludes, except those in flight, once the first of them has
     * waited long enough. The wait lets one event record the outcome of many.
     */
    due: (now: number): readonly PendingDispatch[] =>
      earliestDue(items, now) <= now ? [...items].filter(({ inFlight }) => !inFlight) : [],
    nextDue: (now: number): number => earliestDue(items, now),
  };
}

/** Returns the earliest time at which one of these items is due, except those in flight; Infinity if there is none. */
function earliestDue(items: Iterable<PendingDispatch>, now: number): number {
  let due = Infinity;
  for (const { inFlight, notBefore } of items) {
    if (inFlight || notBefore >= due) continue;
    due = notBefore;
    // The result is not later than now, so no other item can be due sooner.
    if (due <= now) return due;
  }
  return due;
}

function* oldestOfStreams(items: Iterable<PendingDispatch>): Generator<PendingDispatch, void, void> {
  const streams = new Set<string>();
  for (const item of items) {
    const { stream } = item.event;
    if (streams.has(stream)) continue;
    streams.add(stream);
    yield item;
  }
}
