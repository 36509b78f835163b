import type { DatabaseSync, StatementSync } from "node:sqlite";
import { createBoundedCache } from "../../bounded-cache.ts";
import { GENESIS_HASH, HASH_BYTES, LINK_SQL, linkInPlace } from "../../event-hash-chain.ts";
import { isDamage } from "../classify-errors.ts";
import type { Checked, Range } from "./check-result-types.ts";
import { addTo, newSums, type Sums } from "./index-sums.ts";

/** Number of rows read at once. Fewer cost more per row, and this many of the largest events are 32 MiB. */
const CHUNK_EVENTS = 128;

/** Maximum number of streams whose last version is cached. For other streams the previous event is looked up. */
const STREAMS_REMEMBERED_MAX = 16_384;

const SELECT_LINKS = `
  SELECT ${LINK_SQL}, e.hash, e.position, e.stream, e.version, e.time, e.type
  FROM events e CROSS JOIN streams s ON s.id = e.stream CROSS JOIN types t ON t.id = e.type
  WHERE e.position BETWEEN ? AND ? ORDER BY e.position`;

/**
 * SQL for the hash and time of the event before a range. If that event is archived, they come from the database's
 * record of the segment that it ends.
 */
const SELECT_BEFORE = `
  SELECT hash, time FROM events WHERE position BETWEEN ?1 AND ?2
  UNION ALL SELECT hash, last_time FROM segments WHERE last BETWEEN ?1 AND ?2`;

const SELECT_PLACE = `
  SELECT position FROM events WHERE stream = ?1 AND version = ?2
  UNION ALL SELECT position FROM archived_streams WHERE stream = ?1 AND version = ?2`;

/** A row of {@link SELECT_LINKS}. A program that can write the file can put NULL where the tables forbid it. */
type LinkRow = readonly [
  bytes: Uint8Array,
  hash: Uint8Array | null,
  position: number,
  stream: number,
  version: number,
  timeMs: number,
  type: number,
];

/**
 * Checks a range: positions and versions have no gaps, each hash follows from the event and the stored hash before it,
 * times never fall. Yields the number of events that each chunk found good.
 */
export type CheckRange = (range: Range) => Generator<number, Checked>;

/**
 * Creates the check of ranges. Ranges can be checked concurrently, because each check proves the hash that the next
 * range builds on. Create one for each connection and keep it: a new one is a tenth slower at first (measured).
 */
export function createCheckRange(db: DatabaseSync): CheckRange {
  const read = createReadRows(db, SELECT_LINKS);
  const events = createEventCheck(db);

  return function* checkRange({ first, last }) {
    const sums = newSums();
    events.begin(first, sums);
    let chunkEvents = CHUNK_EVENTS;
    for (let low = first; low <= last;) {
      const high = Math.min(last, low + chunkEvents - 1);
      const rows = read(low, high);
      if (rows instanceof Unreadable) {
        if (low === high) return { fault: { position: low, reason: rows.reason }, sums };
        // One of these rows cannot be read, so they are read one by one to find it.
        chunkEvents = 1;
        continue;
      }
      for (let position = low; position <= high; position += 1) {
        const reason = events.check(position, rows[position - low] as LinkRow | undefined);
        if (reason !== undefined) return { fault: { position, reason }, sums };
      }
      yield high - low + 1;
      low = high + 1;
    }
    return { fault: undefined, sums };
  };
}

type BeforeRow = readonly [hash: Uint8Array, timeMs: number];
const BEFORE_FIRST: BeforeRow = [GENESIS_HASH, 0];

interface EventCheck {
  /** Starts the check of a range at position `first`. The events that are then found good are added to `sums`. */
  begin(first: number, sums: Sums): void;
  /** Checks the next event of the range, and returns what is wrong with it; undefined if nothing is. */
  check(position: number, row: LinkRow | undefined): string | undefined;
}

function createEventCheck(db: DatabaseSync): EventCheck {
  const versions = createVersionCheck(db);
  const readBefore = createReadRows(db, SELECT_BEFORE);
  let [previousHash, previousTimeMs] = BEFORE_FIRST;
  let sums = newSums();

  return {
    begin(first, sumsOfRange) {
      sums = sumsOfRange;
      const rows = readBefore(first - 1, first - 1);
      const before = rows instanceof Unreadable ? undefined : (rows[0] as BeforeRow | undefined);
      // If the hash before `first` is missing, the event at `first` cannot be proved; the check of the previous range
      // names the fault.
      [previousHash, previousTimeMs] = before?.[0].length === HASH_BYTES ? before : BEFORE_FIRST;
      versions.begin();
    },
    check(expected, row) {
      if (row === undefined || row[2] !== expected) return "the event is missing";
      const [bytes, stored, position, stream, version, timeMs, type] = row;
      const hash = linkInPlace(previousHash, bytes);
      if (!isSame(hash, stored)) return "the hash does not follow from the event and its predecessor";
      if (timeMs < previousTimeMs) return "the time is before that of its predecessor";
      const reason = versions.faultOf(stream, version, position);
      if (reason !== undefined) return reason;
      previousHash = hash;
      previousTimeMs = timeMs;
      addTo(sums, position, type, stream, version);
      return undefined;
    },
  };
}

/** True if two hashes are equal. A loop is twice as fast as `Buffer.compare` for so few bytes. */
function isSame(a: Uint8Array, b: Uint8Array | null): boolean {
  if (b?.length !== HASH_BYTES) return false;
  for (let index = 0; index < HASH_BYTES; index += 1) {
    if (a[index] !== b[index]) return false;
  }
  return true;
}

interface VersionCheck {
  begin(): void;
  /** Returns a fault unless the versions of a stream are 1, 2, 3 … in order of position, also across ranges. */
  faultOf(stream: number, version: number, position: number): string | undefined;
}

const NOT_NEXT = "the version does not follow on the one before it in its stream";

function createVersionCheck(db: DatabaseSync): VersionCheck {
  const versions = createBoundedCache<number, number>(STREAMS_REMEMBERED_MAX);
  const readPosition = createReadRows(db, SELECT_PLACE);
  const lookUp = (stream: number, version: number, position: number): string | undefined => {
    const rows = readPosition(stream, version - 1);
    if (rows instanceof Unreadable) return rows.reason;
    const before = rows[0] as readonly [position: number] | undefined;
    return before !== undefined && before[0] < position ? undefined : NOT_NEXT;
  };

  return {
    begin: () => versions.clear(),
    faultOf(stream, version, position) {
      const previous = versions.get(stream);
      versions.set(stream, version);
      if (previous !== undefined) return version === previous + 1 ? undefined : NOT_NEXT;
      return version === 1 ? undefined : lookUp(stream, version, position);
    },
  };
}

/** The reason why rows cannot be read; a finding about the log, not a failure of the check. */
class Unreadable {
  readonly reason: string;
  constructor(cause: unknown) {
    this.reason = `the event cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`;
  }
}

/**
 * Creates the function that reads a query's rows for two parameters. Rows are arrays, because objects take a third
 * longer. Nothing stays open between two calls, so a check of hours delays no checkpoint.
 */
function createReadRows(
  db: DatabaseSync,
  sql: string,
): (first: number, second: number) => readonly unknown[] | Unreadable {
  // All runtimes have `setReturnArrays`, but not every one declares it.
  const statement = db.prepare(sql) as StatementSync & { setReturnArrays(isOn: boolean): unknown };
  statement.setReturnArrays(true);
  return (first, second) => {
    try {
      return statement.all(first, second);
    } catch (error) {
      if (isDamage(error)) return new Unreadable(error);
      throw error;
    }
  };
}
