import { CANONICAL_SQL } from "../../event-hash-chain.ts";
import type { FoldedRow, StoredEvent } from "../../codec.ts";
import { versionsWithin } from "./position-bounds.ts";
import type { DatabaseReader } from "./database-reader.ts";

/**
 * Number of events that one statement reads or examines. Decoding and handling that many blocks the thread for some
 * milliseconds at most.
 */
const CHUNK_EVENTS = 128;

interface Placed {
  readonly position: number;
}

/** Columns to read of each event, and the tables to join with the table of events, which is named e. */
export interface Shape<Row extends Placed> {
  readonly columns: string;
  readonly joins: string;
  /** Tells the compiler the type of the rows. No code calls it. */
  readonly row?: (row: Row) => void;
}

export const WHOLE: Shape<StoredEvent> = {
  columns: `e.position, s.name AS stream, e.version, t.name AS type, e.id, e.time AS timeMs,
    lower(hex(e.hash)) AS hash, e.data, e.meta`,
  joins: "CROSS JOIN streams s ON s.id = e.stream CROSS JOIN types t ON t.id = e.type",
};

/**
 * Columns that a fold reads. They are few, because each column and each join costs a twentieth to a tenth of the whole
 * read.
 */
export const FOLDED: Shape<FoldedRow<number | string>> = {
  columns: "e.position, e.version, e.type, e.time, e.data, e.meta",
  joins: "",
};

export interface CanonicalRow extends Placed {
  readonly canonical: Uint8Array;
}

export const CANONICAL: Shape<CanonicalRow> = {
  columns: `e.position, ${CANONICAL_SQL} AS canonical`,
  joins: WHOLE.joins,
};

export interface Range {
  readonly stream?: string | undefined;
  readonly types?: readonly string[] | undefined;
  readonly alongLog?: boolean | undefined;
  /** First position of the range; `from` and `to` are both inclusive. */
  readonly from: number;
  readonly to: number;
  readonly backwards: boolean;
  /** Number of events that the caller takes; Infinity for all. */
  readonly limit: number;
}

/** Yields the matching events chunk by chunk, in order of position; a chunk may be empty before the end. */
export type Chunks<Row> = Generator<Row[], void, void>;

/**
 * Reads the matching events in chunks. Chooses the index (by stream, type or position) in whose order the query reads,
 * so that SQLite never sorts more events than one chunk holds.
 */
export function readChunks<Row extends Placed>(reader: DatabaseReader, shape: Shape<Row>, range: Range): Chunks<Row> {
  const types = range.types && typeIds(reader, range.types);
  if (types?.length === 0) return nothing();
  if (range.stream !== undefined) return byStream(reader, shape, range.stream, types, range);
  return types && range.alongLog !== true
    ? byTypes(reader, shape, types, range)
    : byPosition(reader, shape, types, range);
}

function* nothing(): Chunks<never> {}

function* byPosition<Row extends Placed>(
  reader: DatabaseReader,
  { columns, joins }: Shape<Row>,
  types: readonly number[] | undefined,
  { from, to, backwards, limit }: Range,
): Chunks<Row> {
  // The plus sign keeps SQLite from using the index of types, because it would sort the events of each chunk.
  const filter = types ? `AND +e.type IN (${types.map(() => "?").join()})` : "";
  const sql = `SELECT ${columns} FROM events e ${joins}
    WHERE e.position BETWEEN ? AND ? ${filter} ORDER BY e.position ${order(backwards)}`;
  for (const [low, high] of windows(from, to, backwards, types ? Infinity : limit)) {
    yield reader.all(sql, low, high, ...(types ?? [])) as unknown as Row[];
  }
}

/**
 * Reads the events of one stream in chunks, in the order of their versions, which is also the order of their positions.
 */
function* byStream<Row extends Placed>(
  reader: DatabaseReader,
  { columns, joins }: Shape<Row>,
  name: string,
  types: readonly number[] | undefined,
  range: Range,
): Chunks<Row> {
  const stream = reader.get("SELECT id FROM streams WHERE name = ?", name)?.["id"];
  if (typeof stream !== "number") return;
  const { first, last } = versionsWithin(reader, stream, range.from, range.to);
  const filter = types ? `AND e.type IN (${types.map(() => "?").join()})` : "";
  const sql = `SELECT ${columns} FROM events e ${joins}
    WHERE e.stream = ? AND e.version BETWEEN ? AND ? ${filter} ORDER BY e.version ${order(range.backwards)}`;
  for (const [low, high] of windows(first, last, range.backwards, types ? Infinity : range.limit)) {
    yield reader.all(sql, stream, low, high, ...(types ?? [])) as unknown as Row[];
  }
}

/**
 * Merges the types' index entries, each in order of position, so that SQLite reads only what the chunk needs. `type IN
 * (…) ORDER BY position` would sort every matching entry of the log for each chunk.
 */
function* byTypes<Row extends Placed>(
  reader: DatabaseReader,
  { columns, joins }: Shape<Row>,
  types: readonly number[],
  { from, to, backwards, limit }: Range,
): Chunks<Row> {
  const size = Math.min(CHUNK_EVENTS, limit);
  const entries = types.map(() => "SELECT position FROM events WHERE type = ? AND position BETWEEN ? AND ?");
  const sql = `SELECT ${columns}
    FROM (${entries.join(" UNION ALL ")} ORDER BY position ${order(backwards)} LIMIT ?) found
    CROSS JOIN events e ON e.position = found.position ${joins}`;
  let [low, high] = [from, to];
  while (low <= high) {
    const chunk = reader.all(sql, ...types.flatMap((type) => [type, low, high]), size) as unknown as Row[];
    yield chunk;
    const last = chunk.at(-1);
    if (!last || chunk.length < size) return;
    if (backwards) high = last.position - 1;
    else low = last.position + 1;
  }
}

/** Returns the ids of the types that the log knows; it holds no event of any other type. */
function typeIds(reader: DatabaseReader, names: readonly string[]): number[] {
  const rows = [...new Set(names)].map((name) => reader.get("SELECT id FROM types WHERE name = ?", name));
  return rows.flatMap((row) => (row ? [Number(row["id"])] : []));
}

/** Cuts [first, last] into ranges of one chunk each, or smaller ones if the caller takes fewer events. */
function* windows(
  first: number,
  last: number,
  backwards: boolean,
  limit: number,
): Generator<readonly [number, number]> {
  const size = Math.min(CHUNK_EVENTS, limit);
  if (backwards) {
    for (let high = last; high >= first; high -= size) yield [Math.max(first, high - size + 1), high];
  } else {
    for (let low = first; low <= last; low += size) yield [low, Math.min(last, low + size - 1)];
  }
}

function order(backwards: boolean): "ASC" | "DESC" {
  return backwards ? "DESC" : "ASC";
}
