import { setTimeout as delay } from "node:timers/promises";
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
} from "../segments/read-segments-and-database.ts";
import type { KeyRange } from "../segments/catalogue.ts";
import type { Awaitable } from "../value-or-promise.ts";
import type { Decode, FoldedRow } from "../codec.ts";
import { StoreUnavailable } from "../errors.ts";
import { decodeAll, type OpenQuery } from "../decode-batches.ts";
import type { Folded, NewEvent, Recorded, StoredKey } from "../event-store-interface.ts";
import { readArchiveEnd, readWholeKeys } from "./archive-tables.ts";
import { lastPosition } from "./read-heads-snapshots-leases.ts";
import type { Parameter, Reader } from "./database-reader.ts";

/** Reads a log, including the events at its beginning that may have been moved to archived segments. */
export interface LogReader {
  readonly database: Reader;
  readonly archive: ArchiveReader;
}

/**
 * Number of events that one query returns: so many that the round trip hardly counts, and few enough to be decoded in
 * some milliseconds.
 */
const CHUNK_EVENTS = 1_024;

const WHOLE = `e.position, e.stream, e.version, e.type, e.id, e.time AS "timeMs", encode(e.hash, 'hex') AS hash, e.data, e.meta`;
const FOLDED = "e.position, e.version, e.type, e.time, e.data, e.meta";

/** The canonical text of an event as SQL over events e. `concat_ws` leaves out NULLs, which the table refuses. */
export const CANONICAL = `concat_ws(E'\\n', e.position, e.stream, e.version, e.id, e.type, e.time, e.data, e.meta)`;

export async function* readBatches<E extends NewEvent>(
  log: LogReader,
  decode: Decode<E>,
  query: OpenQuery,
): AsyncGenerator<readonly Recorded<E>[], void, void> {
  const decodeNamed = namingSegments(log.archive, decode);
  for await (const chunk of readRows(log, WHOLE, wholeFromSegment, query)) yield* decodeAll(chunk, decodeNamed);
}

/**
 * Reads events for a subscriber. While the database is away, waits for it and then continues where the reading stopped.
 */
export async function* readOnceBack<E extends NewEvent>(
  log: LogReader,
  decode: Decode<E>,
  { signal, ...query }: OpenQuery & { readonly signal?: AbortSignal },
): AsyncGenerator<readonly Recorded<E>[], void, void> {
  for (let { from } = query; ;) {
    try {
      for await (const events of readBatches(log, decode, { ...query, from })) {
        yield events;
        from = events.at(-1)!.position + 1;
      }
      return;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      await delay(AWAY_PAUSE_MS, undefined, signal && { signal }).catch(() => undefined);
      if (signal?.aborted === true) return;
    }
  }
}

/** Pause in ms between two checks whether the database server is back. */
const AWAY_PAUSE_MS = 100;

export async function* readFolded<E extends NewEvent>(
  log: LogReader,
  decode: (rows: FoldedRow<string>[]) => Awaitable<readonly Folded<E>[]>,
  query: OpenQuery,
): AsyncGenerator<readonly Folded<E>[], void, void> {
  const decodeNamed = namingSegments(log.archive, decode);
  for await (const chunk of readRows(log, FOLDED, foldedFromSegment, query)) yield await decodeNamed(chunk);
}

/** Row with the canonical form of an event: a text if the database returned it, bytes if a segment did. */
interface CanonicalRow {
  readonly position: number;
  readonly canonical: string | Uint8Array;
}

export async function* readCanonical(
  log: LogReader,
  query: OpenQuery,
): AsyncGenerator<readonly Uint8Array[], void, void> {
  const columns = `e.position, e.version, ${CANONICAL} AS canonical`;
  for await (const chunk of readRows<CanonicalRow>(log, columns, canonicalFromSegment, query))
    yield chunk.map(({ canonical }) => (typeof canonical === "string" ? Buffer.from(canonical) : canonical));
}

/**
 * Yields the idempotency keys of appends that ended in a range. A key that moves into the archive meanwhile may come
 * twice.
 */
export async function* readKeys(log: LogReader, range: KeyRange): AsyncGenerator<readonly StoredKey[], void, void> {
  yield* readWholeKeys(log.database, range);
  yield* log.archive.keys(range);
}

/**
 * Yields what the log holds when the first chunk is requested, without later appends: at most `limit` rows in all, and
 * no empty chunk.
 */
async function* readRows<Row extends { readonly position: number }>(
  { database, archive }: LogReader,
  columns: string,
  toRow: FromSegment<Row>,
  { from = 1, to = Infinity, until, backwards = false, limit = Infinity, ...query }: OpenQuery,
): AsyncGenerator<Row[], void, void> {
  if (limit <= 0) return;
  const last = await (until ? positionUntil({ database, archive }, until.getTime()) : lastPosition(database));
  const resolved = { ...query, from: Math.max(1, from), to: Math.min(to, last), backwards, limit };
  yield* readThrough(archive, resolved, toRow, (range) => readLive<Row>(database, columns, range));
}

/**
 * Yields rows of the database that match a query, in chunks. Each chunk has the archive's last position at the time
 * when it was read.
 */
async function* readLive<Row>(
  reader: Reader,
  columns: string,
  query: ResolvedQuery,
): AsyncGenerator<LiveChunk<Row>, void, void> {
  const { backwards, limit } = query;
  const { key, rowsOf, parameters, ...range } = await walkOf(reader, query);
  const order = `ORDER BY ${key} ${backwards ? "DESC" : "ASC"}`;
  const sql = `SELECT ${columns}, (SELECT max(last) FROM log.segments) AS archived
    FROM ${rowsOf(`${order} LIMIT $3`)} ${order}`;
  let [{ first, last }, left] = [range, limit];
  while (first <= last && left > 0) {
    const size = Math.min(CHUNK_EVENTS, left);
    const rows = await reader.all<Row & Placed & { readonly archived: number | null }>(
      sql,
      first,
      last,
      size,
      ...parameters,
    );
    const end = rows.at(-1);
    if (end === undefined) break;
    yield { rows, archived: end.archived ?? 0 };
    if (rows.length < size) return;
    left -= size;
    if (backwards) last = end[key] - 1;
    else first = end[key] + 1;
  }
  if (left > 0) yield { rows: [], archived: await readArchiveEnd(reader) };
}

interface Placed {
  readonly position: number;
  readonly version: number;
}

interface Range {
  /** First key of the range in the index, inclusive. */
  readonly first: number;
  /**
   * Last key of the query's range in the index that the query follows, inclusive. A key is a position in the log, or a
   * version in a stream.
   */
  readonly last: number;
}

/** Index along which a query reads the log, chunk by chunk; no query sorts more than a chunk. */
interface Walk extends Range {
  readonly key: keyof Placed;
  /**
   * Returns SQL of a table `e` with the rows of the next chunk along this index; `next` orders and limits them. The
   * SQL's parameters are the first key, the last key, the number of rows, and `parameters`.
   */
  rowsOf(next: string): string;
  readonly parameters: readonly Parameter[];
}

async function walkOf(reader: Reader, { stream, types, from, to, backwards }: ResolvedQuery): Promise<Walk> {
  const range = { first: from, last: to };
  if (stream !== undefined) return alongStream(reader, stream, types, range);
  if (types) return alongTypes([...new Set(types)], range, backwards);
  const rowsOf = (next: string) => `(SELECT * FROM log.events WHERE position BETWEEN $1 AND $2 ${next}) e`;
  return { ...range, key: "position", rowsOf, parameters: [] };
}

/** Reads one stream in the order of its versions, which is also the order of its positions. */
async function alongStream(
  reader: Reader,
  stream: string,
  types: readonly string[] | undefined,
  { first, last }: Range,
): Promise<Walk> {
  const versions = await reader.get<Range>(
    "SELECT log.version_at($1, $2) + 1 AS first, log.version_at($1, $3) AS last",
    stream,
    first - 1,
    Math.max(0, last),
  );
  const filter = types ? "AND type = ANY (string_to_array($5, E'\\n'))" : "";
  const rowsOf = (next: string) =>
    `(SELECT * FROM log.events WHERE version BETWEEN $1 AND $2 AND stream = $4 ${filter} ${next}) e`;
  return { ...versions!, key: "version", rowsOf, parameters: types ? [stream, types.join("\n")] : [stream] };
}

/**
 * Merges the next index entries of each type. The pairs (type, position) and OFFSET 0 keep PostgreSQL from slower
 * plans: sorting all entries for each chunk, or scanning the whole log.
 */
function alongTypes(types: readonly string[], range: Range, backwards: boolean): Walk {
  const order = backwards ? "DESC" : "ASC";
  const entries = types.map((_, index) => {
    const type = `$${index + 4}`;
    return `(SELECT position FROM log.events WHERE (type, position) BETWEEN (${type}, $1) AND (${type}, $2)
      ORDER BY type ${order}, position ${order} LIMIT $3)`;
  });
  const rowsOf = (next: string) =>
    `(SELECT * FROM (${entries.join(" UNION ALL ")}) entries ${next}) found,
      LATERAL (SELECT * FROM log.events WHERE position = found.position OFFSET 0) e`;
  return { ...range, ...(types.length === 0 && { last: 0 }), key: "position", rowsOf, parameters: types };
}

/**
 * Returns the last position recorded at or before a time. Times never fall along the log, so no index on them is
 * needed.
 */
async function positionUntil({ database, archive }: LogReader, timeMs: number): Promise<number> {
  const row = await database.get<{ position: number; archived: number }>(
    "SELECT log.position_until($1) AS position, log.archive_end() AS archived",
    timeMs,
  );
  return row!.position > row!.archived ? row!.position : archive.positionUntil(timeMs);
}
