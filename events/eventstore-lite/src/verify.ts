import { createBoundedCache } from "./bounded-cache.ts";
import { CANONICAL_SQL, createLink, GENESIS_HASH } from "./chain.ts";
import type { DatabaseReader } from "./read/database-reader.ts";
import { readHead } from "./read/head.ts";
import { nextTurn } from "./read/next-turn.ts";
import type { Verification } from "./store.ts";

/** Events checked in one turn of the event loop: about two milliseconds. */
const CHUNK_EVENTS = 512;

/** Streams whose version is remembered between their events; of others the event before is looked up. */
const STREAMS_REMEMBERED_MAX = 16_384;

const SELECT_LINKS = `
  SELECT e.position, e.stream, e.version, e.time, lower(hex(e.hash)) AS hash, ${CANONICAL_SQL} AS canonical
  FROM events e CROSS JOIN streams s ON s.id = e.stream CROSS JOIN types t ON t.id = e.type
  WHERE e.position BETWEEN ? AND ? ORDER BY e.position`;

interface LinkRow {
  readonly position: number;
  readonly stream: number;
  readonly version: number;
  readonly time: number;
  readonly hash: string;
  readonly canonical: string;
}

interface VerifyOptions {
  readonly from?: number;
  readonly to?: number;
  readonly onProgress?: (checked: number) => void;
}

/**
 * Recomputes the chain over [from, to], and checks that positions and versions have no gaps and times never fall.
 * A log whose last events were cut off is whole in itself: only a head kept elsewhere can show that.
 */
export async function verifyLog(
  reader: DatabaseReader,
  { from = 1, to = Infinity, onProgress }: VerifyOptions,
): Promise<Verification> {
  const head = readHead(reader);
  const first = Math.max(1, from);
  const last = Math.min(to, head.position);
  const check = createCheck(reader, first);
  let checked = 0;
  for (let low = first; low <= last; low += CHUNK_EVENTS) {
    const high = Math.min(last, low + CHUNK_EVENTS - 1);
    const rows = reader.all(SELECT_LINKS, low, high) as unknown as LinkRow[];
    for (let position = low; position <= high; position += 1) {
      const reason = check(position, rows[position - low]);
      if (reason !== undefined) return { ok: false, checked, head, fault: { position, reason } };
      checked += 1;
    }
    onProgress?.(checked);
    await nextTurn();
  }
  return { ok: true, checked, head };
}

/** Makes the function that checks one event after the other, starting at `first`, and names what is wrong. */
function createCheck(
  reader: DatabaseReader,
  first: number,
): (position: number, row: LinkRow | undefined) => string | undefined {
  const link = createLink();
  const isNextVersion = createVersionCheck(reader);
  const before = reader.get("SELECT hash, time FROM events WHERE position = ?", first - 1);
  let previousHash = before ? (before["hash"] as Uint8Array) : GENESIS_HASH;
  let previousTime = Number(before?.["time"] ?? 0);

  return (position, row) => {
    if (row?.position !== position) return "the event is missing";
    const hash = link(previousHash, row.canonical);
    if (hash.toString("hex") !== row.hash) return "the hash does not follow from the event and its predecessor";
    if (row.time < previousTime) return "the time is before that of its predecessor";
    if (!isNextVersion(row)) return "the version does not follow on the one before it in its stream";
    previousHash = hash;
    previousTime = row.time;
    return undefined;
  };
}

/** Versions of a stream are 1, 2, 3 … in order of position. */
function createVersionCheck(reader: DatabaseReader): (row: LinkRow) => boolean {
  const versions = createBoundedCache<number, number>(STREAMS_REMEMBERED_MAX);
  const isPreceded = ({ stream, version, position }: LinkRow) => {
    const before = reader.get("SELECT position FROM events WHERE stream = ? AND version = ?", stream, version - 1);
    return before !== undefined && Number(before["position"]) < position;
  };

  return (row) => {
    const previous = versions.get(row.stream);
    versions.set(row.stream, row.version);
    if (previous !== undefined) return row.version === previous + 1;
    return row.version === 1 || isPreceded(row);
  };
}
