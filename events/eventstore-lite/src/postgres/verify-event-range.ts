import { createLink, GENESIS_HASH } from "../event-hash-chain.ts";
import type { Fault, Range } from "../sqlite/verify/check-result-types.ts";
import { readHashAt } from "./read-heads-snapshots-leases.ts";
import { CANONICAL } from "./read.ts";
import type { Reader } from "./database-reader.ts";

/** Number of events that one query returns. */
const CHUNK_EVENTS = 512;

const SELECT_LINKS = `
  SELECT e.position, e.version, e.time, e.hash, ${CANONICAL} AS canonical,
    coalesce((SELECT b.position FROM log.events b WHERE b.stream = e.stream AND b.version = e.version - 1),
      (SELECT a.position FROM log.archived_streams a WHERE a.stream = e.stream AND a.version = e.version - 1)) AS before
  FROM log.events e WHERE e.position BETWEEN $1 AND $2 ORDER BY e.position`;

interface LinkRow {
  readonly position: number;
  readonly version: number;
  readonly time: number;
  readonly hash: Uint8Array;
  readonly canonical: string;
  /** Position of the previous event in the same stream; null if there is none. */
  readonly before: number | null;
}

/** Returns the last hash of the segment that ends at `position`; the first event that is not archived builds on it. */
async function readSealedHash(reader: Reader, position: number): Promise<string | undefined> {
  const row = await reader.get<{ hash: string }>(
    "SELECT encode(hash, 'hex') AS hash FROM log.segments WHERE last = $1",
    position,
  );
  return row?.hash;
}

type Check = (position: number, row: LinkRow | undefined) => string | undefined;

/**
 * Recomputes the chain in chunks, and checks that positions and versions have no gaps and times never fall. Returns the
 * first event that does not fit. Does not check indexes, which the server's `amcheck` does.
 */
export async function checkRange(
  reader: Reader,
  { first, last }: Range,
  onProgress: (checked: number) => void = () => {},
): Promise<Fault | undefined> {
  const before = (await readHashAt(reader, first - 1)) ?? (await readSealedHash(reader, first - 1));
  const check = createCheck(before ?? "");
  for (let low = first; low <= last; low += CHUNK_EVENTS) {
    const high = Math.min(last, low + CHUNK_EVENTS - 1);
    const rows = await reader.all<LinkRow>(SELECT_LINKS, low, high);
    for (let position = low; position <= high; position += 1) {
      const reason = check(position, rows[position - low]);
      if (reason !== undefined) return { position, reason };
    }
    onProgress(high - first + 1);
  }
  return undefined;
}

function createCheck(before: string): Check {
  const link = createLink();
  let previous: Uint8Array = before === "" ? GENESIS_HASH : Buffer.from(before, "hex");
  let previousTime = 0;

  return (expected, row) => {
    if (row?.position !== expected) return "the event is missing";
    const { position, version, time, hash, canonical, before } = row;
    previous = link(previous, canonical);
    if (!Buffer.from(previous).equals(hash)) return "the hash does not follow from the event and its predecessor";
    if (time < previousTime) return "the time is before that of its predecessor";
    const isNext = version === 1 ? before === null : before !== null && before < position;
    if (!isNext) return "the version does not follow on the one before it in its stream";
    previousTime = time;
    return undefined;
  };
}
