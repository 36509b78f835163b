import type { DatabaseSync } from "node:sqlite";
import { createBoundedCache } from "../bounded-cache.ts";
import { CANONICAL_SQL, createLink, GENESIS_HASH, HASH_BYTES } from "../chain.ts";
import type { Fault, Range } from "./range.ts";
import { createReadRows, Unreadable } from "./rows.ts";

/** Rows read at once: fewer cost more a row, and this many of the largest events are 32 MiB. */
const CHUNK_EVENTS = 128;

/** Streams whose version is remembered between their events; of others the event before is looked up. */
const STREAMS_REMEMBERED_MAX = 16_384;

const SELECT_LINKS = `
  SELECT ${CANONICAL_SQL}, e.hash, e.position, e.stream, e.version, e.time
  FROM events e CROSS JOIN streams s ON s.id = e.stream CROSS JOIN types t ON t.id = e.type
  WHERE e.position BETWEEN ? AND ? ORDER BY e.position`;

/** A row of {@link SELECT_LINKS}. Somebody who can write the file can put NULL where the tables forbid it. */
type LinkRow = readonly [
  canonical: string | null,
  hash: Uint8Array,
  position: number,
  stream: number,
  version: number,
  timeMs: number,
];

/**
 * Checks one range: positions and versions without gaps, each hash made from the event and the hash stored before it,
 * times that never fall. Yields the number of events that each chunk found good; returns the first fault.
 *
 * What the range builds on is proved by whoever checks the range before it, so that ranges can be checked at once.
 */
export function* checkRange(db: DatabaseSync, { first, last }: Range): Generator<number, Fault | undefined> {
  const read = createReadRows(db, SELECT_LINKS);
  const check = createCheck(db, first);
  let chunkEvents = CHUNK_EVENTS;
  for (let low = first; low <= last;) {
    const high = Math.min(last, low + chunkEvents - 1);
    const rows = read(low, high);
    if (rows instanceof Unreadable) {
      if (low === high) return { position: low, reason: rows.reason };
      // One of them cannot be read: they are read one by one to find out which.
      chunkEvents = 1;
      continue;
    }
    for (let position = low; position <= high; position += 1) {
      const reason = check(position, rows[position - low] as LinkRow | undefined);
      if (reason !== undefined) return { position, reason };
    }
    yield high - low + 1;
    low = high + 1;
  }
  return undefined;
}

/** Makes the function that checks one event after the other, starting at `first`, and names what is wrong. */
function createCheck(
  db: DatabaseSync,
  first: number,
): (position: number, row: LinkRow | undefined) => string | undefined {
  const link = createLink();
  const isNextVersion = createVersionCheck(db);
  const before = db.prepare("SELECT hash, time FROM events WHERE position = ?").get(first - 1);
  let previousHash = before ? (before["hash"] as Uint8Array) : GENESIS_HASH;
  let previousTimeMs = Number(before?.["time"] ?? 0);

  return (expected, row) => {
    if (row === undefined || row[2] !== expected) return "the event is missing";
    const [canonical, stored, position, stream, version, timeMs] = row;
    const hash = link(previousHash, canonical ?? "");
    if (!isSame(hash, stored)) return "the hash does not follow from the event and its predecessor";
    if (timeMs < previousTimeMs) return "the time is before that of its predecessor";
    if (!isNextVersion(stream, version, position)) {
      return "the version does not follow on the one before it in its stream";
    }
    previousHash = hash;
    previousTimeMs = timeMs;
    return undefined;
  };
}

/** A loop is twice as fast as `Buffer.compare` for so few bytes. */
function isSame(a: Uint8Array, b: Uint8Array): boolean {
  for (let index = 0; index < HASH_BYTES; index += 1) {
    if (a[index] !== b[index]) return false;
  }
  return b.length === HASH_BYTES;
}

/** Versions of a stream are 1, 2, 3 … in order of position, also where a stream goes on in another range. */
function createVersionCheck(db: DatabaseSync): (stream: number, version: number, position: number) => boolean {
  const versions = createBoundedCache<number, number>(STREAMS_REMEMBERED_MAX);
  const select = db.prepare("SELECT position FROM events WHERE stream = ? AND version = ?");
  const isPreceded = (stream: number, version: number, position: number): boolean => {
    const before = select.get(stream, version - 1);
    return before !== undefined && Number(before["position"]) < position;
  };

  return (stream, version, position) => {
    const previous = versions.get(stream);
    versions.set(stream, version);
    if (previous !== undefined) return version === previous + 1;
    return version === 1 || isPreceded(stream, version, position);
  };
}
