import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import { LANES, type Lane } from "../../events/channel.ts";
import { REQUESTING } from "../../events/dispatches.ts";

/** Owing events in one stretch: half a lane's window, since that is how much of it is refilled at once. */
const STRETCH_EVENTS = 500;

/** Stretches kept of a lane: as far as channels of about the same pace are apart. */
const KEPT_STRETCHES = 4;

/** A part of the log: what it holds of one lane, of whatever channel. */
export interface Chunk {
  readonly events: readonly Recorded[];
  /** Where to read on. */
  readonly next: number;
  /** The log held no more when it was read for this call. */
  readonly isLast: boolean;
}

/** What the log owes, for the lanes of all channels: they read the same events, one soon after the other. */
export interface OutboxReader {
  /** The owing events from position `from` on. */
  read(lane: Lane, from: number): Promise<Chunk>;
  /** What was read is not to be used any more: some of it was erased. */
  forget(): void;
}

interface Kept {
  readonly from: number;
  readonly reading: Promise<Chunk>;
  /** Infinity until it is read. */
  next: number;
}

export function createOutboxReader(store: EventStore<Event>): OutboxReader {
  const kept: Record<Lane, Kept[]> = { clicks: [], direct: [] };

  const readOn = (lane: Lane, from: number): Promise<Chunk> => {
    const reading = readStretch(store, lane, from);
    const stretch: Kept = { from, reading, next: Infinity };
    kept[lane].unshift(stretch);
    kept[lane].length = Math.min(kept[lane].length, KEPT_STRETCHES);
    const forget = (): void => void (kept[lane] = kept[lane].filter((other) => other !== stretch));
    reading.then(({ next }) => (next === from ? forget() : (stretch.next = next)), forget);
    return reading;
  };

  return {
    forget() {
      for (const lane of LANES) kept[lane] = [];
    },
    async read(lane, from) {
      const known = kept[lane].find((stretch) => holds(stretch, from));
      if (known === undefined) return readOn(lane, from);
      const { events, next } = await known.reading;
      // It was read for another lane, and the log may have grown since.
      const beyond = from === known.from ? events : events.filter(({ position }) => position >= from);
      return { events: beyond, next: Math.max(from, next), isLast: false };
    },
  };
}

/** One that is still being read can only be shared from its beginning: nobody knows how far it goes. */
function holds({ from, next }: Kept, position: number): boolean {
  return next === Infinity ? position === from : from <= position && position < next;
}

async function readStretch(store: EventStore<Event>, lane: Lane, from: number): Promise<Chunk> {
  const events: Recorded[] = [];
  for await (const event of store.read({ types: REQUESTING[lane], from, limit: STRETCH_EVENTS })) events.push(event);
  const last = events.at(-1);
  return { events, next: last === undefined ? from : last.position + 1, isLast: events.length < STRETCH_EVENTS };
}
