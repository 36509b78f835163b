import type { Awaitable } from "../../awaitable.ts";
import type { Decode, FoldedRow } from "../../codec.ts";
import { endLongTurn } from "../../next-turn.ts";
import { decodeAll, type OpenQuery } from "../../read.ts";
import type { Folded, NewEvent, Recorded, StoredKey } from "../../store.ts";
import { lastPosition, lastPositionUntil } from "./bounds.ts";
import { CANONICAL, type Chunks, FOLDED, type Range, readChunks, WHOLE } from "./chunks.ts";
import type { DatabaseReader } from "./database-reader.ts";

/**
 * Reads what the log holds when the first event is asked for; what is appended meanwhile is left out.
 * Other work gets its turn every few milliseconds, however many reads these are.
 */
export async function* readBatches<E extends NewEvent>(
  reader: DatabaseReader,
  decode: Decode<E>,
  query: OpenQuery,
): AsyncGenerator<readonly Recorded<E>[], void, void> {
  for await (const chunk of inTurns((range) => readChunks(reader, WHOLE, range), reader, query)) {
    yield* decodeAll(chunk, decode);
  }
}

export async function* readFolded<E extends NewEvent>(
  reader: DatabaseReader,
  decode: (rows: FoldedRow[]) => Awaitable<readonly Folded<E>[]>,
  query: OpenQuery,
): AsyncGenerator<readonly Folded<E>[], void, void> {
  for await (const chunk of inTurns((range) => readChunks(reader, FOLDED, range), reader, query))
    yield await decode(chunk);
}

export async function* readCanonical(
  reader: DatabaseReader,
  query: OpenQuery,
): AsyncGenerator<readonly Uint8Array[], void, void> {
  for await (const chunk of inTurns((range) => readChunks(reader, CANONICAL, range), reader, query))
    yield chunk.map(({ canonical }) => canonical);
}

/** Keys that one statement reads: some milliseconds. */
const CHUNK_KEYS = 1_024;

export async function* readKeys(
  reader: DatabaseReader,
  { from, to }: { readonly from: number; readonly to: number },
): AsyncGenerator<readonly StoredKey[], void, void> {
  // No index leads from a position to its keys: each append would pay for it.
  const sql = `SELECT key, digest, first, last, version FROM idempotency_keys WHERE key > ? ORDER BY key LIMIT ${CHUNK_KEYS}`;
  for (let after = ""; ;) {
    const rows = reader.all(sql, after) as unknown as StoredKey[];
    const found = rows.filter(({ last }) => last >= from && last <= to);
    if (found.length > 0) yield found;
    if (rows.length < CHUNK_KEYS) return;
    after = rows.at(-1)!.key;
    await endLongTurn();
  }
}

/** The chunks of a query with at most `limit` rows in all, none of them empty. */
async function* inTurns<Row>(
  chunksOf: (range: Range) => Chunks<Row>,
  reader: DatabaseReader,
  { from = 1, to = Infinity, until, backwards = false, limit = Infinity, ...query }: OpenQuery,
): AsyncGenerator<Row[], void, void> {
  if (limit <= 0) return;
  let left = limit;
  await endLongTurn();
  const end = Math.min(to, until ? lastPositionUntil(reader, until.getTime()) : lastPosition(reader));
  for (const chunk of chunksOf({ ...query, from: Math.max(1, from), to: end, backwards, limit })) {
    if (chunk.length > 0) yield chunk.length > left ? chunk.slice(0, left) : chunk;
    left -= chunk.length;
    await endLongTurn();
    if (left <= 0) return;
  }
}
