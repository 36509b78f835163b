import type { Awaitable } from "../awaitable.ts";
import { GENESIS_HASH } from "../chain.ts";
import type { StoredKey } from "../store.ts";

/** The database's record of a sealed segment whose events are no longer in the database. */
export interface SegmentEntry {
  /** Positions of the first and the last event. */
  readonly first: number;
  readonly last: number;
  /** Name of its file; the file's size and SHA-256 (64 hex digits) follow. */
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  /** The hash after the last event; 64 hex digits. */
  readonly hash: string;
  /** Times of the first and the last event in ms since 1970. */
  readonly firstTime: number;
  readonly lastTime: number;
  /** How many events it has of each type. */
  readonly types: Readonly<Record<string, number>>;
  /** The lowest position for which it holds an idempotency key; 0 if it holds none. */
  readonly keysFrom: number;
}

/** The last event that a segment holds of a stream. */
export interface StreamPlace {
  readonly position: number;
  readonly version: number;
}

/** The archived part of one stream, over all segments. */
export interface ArchivedStream extends StreamPlace {
  readonly stream: string;
  /** Segments that hold some of its events. */
  readonly segments: number;
}

/** A range of positions at which appends ended, both inclusive. */
export interface KeyRange {
  readonly from: number;
  readonly to: number;
}

/** The part of an archive that is in the log's database, which each engine reads in its own way. */
export interface ArchiveTable {
  /** The last position whose event is only in a segment; 0 if there is none. */
  end(): Awaitable<number>;
  /** Segments that begin after a position, in order. */
  segmentsAfter(position: number): Awaitable<readonly SegmentEntry[]>;
  /** Throws {@link StoreUnusable} if this program may not remove events from the database. */
  requireRight?(): Promise<void>;
  /** The idempotency keys that the database holds whole, of appends that ended in the range. */
  wholeKeys(range: KeyRange): AsyncIterable<readonly StoredKey[]>;
  /** Returns, for each key, the numbers (from 1) of the segments that may hold it. */
  keySegments(keys: readonly string[]): Awaitable<readonly (readonly number[])[]>;
  /** One place for each segment that holds events of the stream, in the order of positions. */
  streamPlaces(stream: string): Awaitable<readonly StreamPlace[]>;
  /** Some of the streams whose names come after a name, ordered by name; empty at the end. */
  streamsAfter(name: string): Awaitable<readonly ArchivedStream[]>;
}

/** The segments of a log that were read so far. */
export interface Catalogue {
  /** The end of the archive when it was last read; it only grows. */
  readonly end: number;
  /** Reads the new segments up to `end`, which the caller has just read. */
  extend(end: number): Promise<void>;
  refresh(): Promise<void>;
  entries(): readonly SegmentEntry[];
  /** The index in `entries` of the segment that holds a position up to `end`. */
  locate(position: number): number;
  /** The hash before the first event of the segment at that index. */
  hashBefore(index: number): string;
}

export function createCatalogue(table: Pick<ArchiveTable, "end" | "segmentsAfter">): Catalogue {
  const entries: SegmentEntry[] = [];
  const currentEnd = (): number => entries.at(-1)?.last ?? 0;

  async function extend(end: number): Promise<void> {
    if (end <= currentEnd()) return;
    // Concurrent calls may read the same segments.
    for (const entry of await table.segmentsAfter(currentEnd())) if (entry.first > currentEnd()) entries.push(entry);
  }

  return {
    get end() {
      return currentEnd();
    },
    extend,
    refresh: async () => extend(await table.end()),
    entries: () => entries,
    locate(position) {
      let [low, high] = [0, entries.length - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (entries[middle]!.last < position) low = middle + 1;
        else high = middle;
      }
      return low;
    },
    hashBefore: (index) => entries[index - 1]?.hash ?? Buffer.from(GENESIS_HASH).toString("hex"),
  };
}
