import type { EventStore, Query } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import type { Lane } from "../../events/channel.ts";
import { REQUESTING } from "../../events/dispatches.ts";

/** Events in one chunk: half a lane's window, since that is how much of it is refilled at once. */
const CHUNK_EVENTS = 500;

/** Chunks kept of a lane: as far as channels of about the same pace are apart. */
const KEPT_CHUNKS = 4;

/** A part of the log: the events that request dispatches in one lane, to whatever channel. */
export interface Chunk {
  readonly events: readonly Recorded[];
  /** Where to read on. */
  readonly next: number;
  /** The log held no more when it was read for this call. */
  readonly isLast: boolean;
}

/** The lanes of several channels. */
type SharedLane = Exclude<Lane, "events">;

/** Reads the log once for the lanes of all channels: they need the same events, one soon after the other. */
export interface OutboxReader {
  /** The events that request dispatches, from position `from` on. */
  read(lane: SharedLane, from: number): Promise<Chunk>;
  /** Drops what was read: some of it was erased. */
  forget(): void;
}

interface KeptChunk {
  readonly from: number;
  readonly reading: Promise<Chunk>;
  /** Infinity until it is read. */
  next: number;
}

export function createOutboxReader(store: EventStore<Event>): OutboxReader {
  const kept: Record<SharedLane, KeptChunk[]> = { clicks: [], direct: [] };

  const readOn = (lane: SharedLane, from: number): Promise<Chunk> => {
    const reading = readChunk(store, { types: REQUESTING[lane], from });
    const chunk: KeptChunk = { from, reading, next: Infinity };
    kept[lane].unshift(chunk);
    kept[lane].length = Math.min(kept[lane].length, KEPT_CHUNKS);
    const forget = (): void => void (kept[lane] = kept[lane].filter((other) => other !== chunk));
    reading.then(({ next }) => (next === from ? forget() : (chunk.next = next)), forget);
    return reading;
  };

  return {
    forget() {
      kept.clicks = [];
      kept.direct = [];
    },
    async read(lane, from) {
      const known = kept[lane].find((chunk) => holds(chunk, from));
      if (known === undefined) return readOn(lane, from);
      const { events, next } = await known.reading;
      // It was read for another lane, and the log may have grown since.
      const beyond = from === known.from ? events : events.filter(({ position }) => position >= from);
      return { events: beyond, next: Math.max(from, next), isLast: false };
    },
  };
}

/** One that is still being read can only be shared from its beginning: its end is not known yet. */
function holds({ from, next }: KeptChunk, position: number): boolean {
  return next === Infinity ? position === from : from <= position && position < next;
}

/** The next events of these types from position `from` on, and up to `to` where that is given. */
export async function readChunk(
  store: EventStore<Event>,
  { from, ...query }: Pick<Query, "types" | "to"> & { readonly from: number },
): Promise<Chunk> {
  const events: Recorded[] = [];
  for await (const event of store.read({ ...query, from, limit: CHUNK_EVENTS })) events.push(event);
  const last = events.at(-1);
  return { events, next: last === undefined ? from : last.position + 1, isLast: events.length < CHUNK_EVENTS };
}
