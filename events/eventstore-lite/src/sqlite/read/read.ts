import {
  type ArchiveReader,
  canonicalFromSegment,
  foldedFromSegment,
  type FromSegment,
  type LiveChunk,
  namingSegments,
  readThrough,
  type ResolvedQuery,
  wholeFromSegment,
} from "../../segments/read-segments-and-database.ts";
import type { KeyRange } from "../../segments/catalogue.ts";
import type { Awaitable } from "../../value-or-promise.ts";
import type { Decode, FoldedRow } from "../../codec.ts";
import { endLongTurn } from "../../next-turn.ts";
import { decodeAll, type OpenQuery } from "../../decode-batches.ts";
import type { Folded, NewEvent, Recorded, StoredKey } from "../../event-store-interface.ts";
import { archiveEnd } from "../archive-tables.ts";
import { readWholeKeys } from "../archived-idempotency-keys.ts";
import { lastPosition, lastPositionUntil } from "./position-bounds.ts";
import { CANONICAL, FOLDED, readChunks, type Shape, WHOLE } from "./read-chunks.ts";
import type { DatabaseReader } from "./database-reader.ts";

/** Reads a log, including the events at its beginning that may have been moved to archived segments. */
export interface LogReader {
  readonly database: DatabaseReader;
  readonly archive: ArchiveReader;
}

/**
 * Reads what the log holds when the first event is requested, without later appends. Other work gets its turn every few
 * milliseconds, however many reads run at once.
 */
export async function* readBatches<E extends NewEvent>(
  log: LogReader,
  decode: Decode<E>,
  query: OpenQuery,
): AsyncGenerator<readonly Recorded<E>[], void, void> {
  const decodeNamed = namingSegments(log.archive, decode);
  for await (const chunk of readRows(log, WHOLE, wholeFromSegment, query)) yield* decodeAll(chunk, decodeNamed);
}

/** Yields events for a fold. The type of an archived row is a name, that of any other row is a number. */
export async function* readFolded<E extends NewEvent>(
  log: LogReader,
  decode: (rows: FoldedRow<number | string>[]) => Awaitable<readonly Folded<E>[]>,
  query: OpenQuery,
): AsyncGenerator<readonly Folded<E>[], void, void> {
  const rows = readRows<FoldedRow<number | string>>(log, FOLDED, foldedFromSegment, query);
  const decodeNamed = namingSegments(log.archive, decode);
  for await (const chunk of rows) yield await decodeNamed(chunk);
}

export async function* readCanonical(
  log: LogReader,
  query: OpenQuery,
): AsyncGenerator<readonly Uint8Array[], void, void> {
  for await (const chunk of readRows(log, CANONICAL, canonicalFromSegment, query))
    yield chunk.map(({ canonical }) => canonical);
}

/**
 * Yields the idempotency keys of appends that ended in a range. A key that moves into the archive meanwhile may come
 * twice.
 */
export async function* readKeys(log: LogReader, range: KeyRange): AsyncGenerator<readonly StoredKey[], void, void> {
  yield* readWholeKeys(log.database, range);
  yield* log.archive.keys(range);
}

/** Yields the chunks of a query: at most `limit` rows in all, and no empty chunk. */
async function* readRows<Row extends { readonly position: number }>(
  { database, archive }: LogReader,
  shape: Shape<Row>,
  toRow: FromSegment<Row>,
  { from = 1, to = Infinity, until, backwards = false, limit = Infinity, ...query }: OpenQuery,
): AsyncGenerator<Row[], void, void> {
  if (limit <= 0) return;
  await endLongTurn();
  const last = until ? await positionUntil({ database, archive }, until.getTime()) : lastPosition(database);
  const resolved = { ...query, from: Math.max(1, from), to: Math.min(to, last), backwards, limit };
  yield* readThrough(archive, resolved, toRow, (range) => readLive(database, shape, range));
}

async function positionUntil({ database, archive }: LogReader, timeMs: number): Promise<number> {
  return lastPositionUntil(database, timeMs) ?? archive.positionUntil(timeMs);
}

/**
 * Yields matching rows of the database in chunks. The last chunk has no rows, only the end of the archive, from which
 * the caller learns if events of the query moved there meanwhile.
 */
function* readLive<Row extends { readonly position: number }>(
  reader: DatabaseReader,
  shape: Shape<Row>,
  query: ResolvedQuery,
): Generator<LiveChunk<Row>, void, void> {
  for (const rows of readChunks(reader, shape, query)) yield { rows, archived: archiveEnd(reader) };
  yield { rows: [], archived: archiveEnd(reader) };
}
