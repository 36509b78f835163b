import type { Awaitable } from "../value-or-promise.ts";
import { GENESIS_HASH } from "../event-hash-chain.ts";
import type { StoredKey } from "../event-store-interface.ts";

/** Size and SHA-256 (64 hex digits) of a segment's file. */
export interface RecordedFile {
  readonly bytes: number;
  readonly sha256: string;
}

/** The part of a log that a segment holds. */
export interface SegmentRange {
  /** Position of the segment's first event. */
  readonly first: number;
  /** Position of the segment's last event. */
  readonly last: number;
  /** Hash of the segment's last event, 64 hex digits; only their beginning if the range was read from a file's name. */
  readonly hash: string;
}

/** A durable segment as the engine records it. The engine derives all other columns from the segment's events. */
export interface SegmentFile extends SegmentRange, RecordedFile {
  /** Name of the segment's file. */
  readonly name: string;
  /** Lowest position for which the segment holds an idempotency key; 0 if it holds none. */
  readonly keysFrom: number;
}

/** The database's record of a sealed segment whose events are no longer in the database. */
export interface SegmentEntry extends SegmentFile {
  /** Time of the segment's first event, in ms since 1970. */
  readonly firstTime: number;
  /** Time of the segment's last event, in ms since 1970. */
  readonly lastTime: number;
  /** Number of the segment's events of each type. */
  readonly types: Readonly<Record<string, number>>;
}

/** The last event of one stream within a segment: its position in the log, and its version in the stream. */
export interface StreamPlace {
  readonly position: number;
  readonly version: number;
}

/** The archived part of one stream, over all segments. */
export interface ArchivedStream extends StreamPlace {
  readonly stream: string;
  /** Number of segments that hold events of the stream. */
  readonly segments: number;
}

/** Range of log positions, both inclusive. An idempotency key is in the range if the last event of its append is. */
export interface KeyRange {
  readonly from: number;
  readonly to: number;
}

/** The database's list of the log's segments, the files that hold archived events. */
export interface SegmentList {
  /** Returns the last position whose event is only in a segment; 0 if there is none. */
  end(): Awaitable<number>;
  /** Returns the segments that begin after a position, in order. */
  segmentsAfter(position: number): Awaitable<readonly SegmentEntry[]>;
}

/** The database's list of streams with archived events. */
export interface StreamList {
  /** Returns the next streams whose names come after a name, ordered by name; none at the end. */
  streamsAfter(name: string): Awaitable<readonly ArchivedStream[]>;
}

/** The part of an archive that is in the log's database, which each engine reads in its own way. */
export interface ArchiveTable extends SegmentList, StreamList {
  /**
   * Throws {@link StoreUnusable} if this program's database user may not remove events from the database, which
   * archiving requires.
   */
  requireRight?(): Promise<void>;
  /** Yields the idempotency keys that the database still holds whole, of appends that ended in the range. */
  wholeKeys(range: KeyRange): AsyncIterable<readonly StoredKey[]>;
  /**
   * Returns, for each idempotency key, the numbers (from 1) of the segments that may hold it. The caller searches these
   * segments, because the database keeps only hashes of archived keys, and two keys may have the same hash.
   */
  keySegments(keys: readonly string[]): Awaitable<readonly (readonly number[])[]>;
  /**
   * Returns, for each segment that holds events of the stream, the position and the version of the stream's last event
   * in that segment, in ascending order.
   */
  streamPlaces(stream: string): Awaitable<readonly StreamPlace[]>;
}

/** Keeps in memory the database's list of a log's archived segments, as far as the list was read. Reads no segment. */
export interface Catalogue {
  /** End of the archive when it was last read; it only grows. */
  readonly end: number;
  /**
   * Reads the list entries of new segments. `end`: last position of the archive, which the caller has just read from
   * the database.
   */
  extend(end: number): Promise<void>;
  refresh(): Promise<void>;
  entries(): readonly SegmentEntry[];
  /** Returns the index in `entries` of the segment that holds an archived position, which must not be beyond `end`. */
  locate(position: number): number;
  /** Returns the hash of the last event before a segment, given the segment's index in `entries`. */
  hashBefore(index: number): string;
}

export function createCatalogue(table: SegmentList): Catalogue {
  const entries: SegmentEntry[] = [];
  const currentEnd = (): number => entries.at(-1)?.last ?? 0;

  async function extend(end: number): Promise<void> {
    if (end <= currentEnd()) return;
    // Concurrent calls may read the same segments, so a segment that is already in the list is skipped.
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
