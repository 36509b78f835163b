import type { Awaitable } from "../value-or-promise.ts";
import type { FoldedRow, StoredEvent } from "../codec.ts";
import { endLongTurn } from "../next-turn.ts";
import { readEvent } from "./seal-and-open-segments.ts";
import type { StoredKey } from "../event-store-interface.ts";
import { type FindArchivedKey, findArchivedKey, readArchivedKeys } from "./idempotency-keys.ts";
import type { ArchiveTable, Catalogue, KeyRange, SegmentEntry } from "./catalogue.ts";
import { named, type OpenSegment, type OpenSegments } from "./segment-cache.ts";

/** Number of events of a segment that are examined without a pause: less than a millisecond. */
const CHUNK_EVENTS = 128;

/**
 * Maximum number of types whose names are searched for in an event's bytes, so that other events need not be parsed.
 * Queries for one rare type take a quarter less time; with more types, the search takes longer than parsing.
 */
const SOUGHT_TYPES_MAX = 2;

const toLine = (type: string): Buffer => Buffer.from(`\n${type}\n`);

/** Makes a reader's row from an archived event; `fields` are the lines of the event's canonical bytes. */
export type FromSegment<Row> = (segment: OpenSegment, position: number, fields: readonly string[]) => Row;

export const wholeFromSegment: FromSegment<StoredEvent> = (segment, position, fields) => {
  const [, stream, version, id, type, time, data, meta] = fields as CanonicalFields;
  const hash = segment.hash(position);
  return { position, stream, version: Number(version), type, id, timeMs: Number(time), hash, data, meta };
};

export const foldedFromSegment: FromSegment<FoldedRow<string>> = (_, position, fields) => {
  const [, , version, , type, time, data, meta] = fields as CanonicalFields;
  return { position, version: Number(version), type, time: Number(time), data, meta };
};

/** Copies the bytes, because a view of one event would keep the whole segment in memory. */
export const canonicalFromSegment: FromSegment<{ readonly position: number; readonly canonical: Uint8Array }> = (
  segment,
  position,
) => ({ position, canonical: Buffer.from(segment.canonical(position)) });

export type CanonicalFields = readonly [
  position: string,
  stream: string,
  version: string,
  id: string,
  type: string,
  time: string,
  data: string,
  meta: string,
];

export function toFields(canonical: Buffer): CanonicalFields {
  return canonical.toString("utf8").split("\n") as unknown as CanonicalFields;
}

/**
 * Wraps `decode`: if an archived row is no valid event, the error is a SegmentDamaged that names the segment. The
 * segment is examined only after `decode` failed, because parsing each event twice would slow down all folds.
 */
export function namingSegments<Row extends { readonly position: number }, Decoded>(
  { catalogue, open }: ArchiveReader,
  decode: (rows: Row[]) => Awaitable<Decoded>,
): (rows: Row[]) => Promise<Decoded> {
  return async (rows) => {
    try {
      return await decode(rows);
    } catch (error) {
      for (const { position } of rows) {
        if (position > catalogue.end) continue;
        const entry = catalogue.entries()[catalogue.locate(position)]!;
        await named(entry, async () => readEvent((await open(entry)).canonical(position), ""));
      }
      throw error;
    }
  };
}

/** A query whose bounds are known. */
export interface ResolvedQuery {
  readonly stream?: string | undefined;
  readonly types?: readonly string[] | undefined;
  readonly alongLog?: boolean | undefined;
  /** First position of the query, inclusive. */
  readonly from: number;
  /** Last position of the query, inclusive. */
  readonly to: number;
  readonly backwards: boolean;
  readonly limit: number;
}

/** Rows of the database that match a query. `archived`: last archived position, read with the rows or after them. */
export interface LiveChunk<Row> {
  readonly rows: Row[];
  readonly archived: number;
}

/** Reads archived events and idempotency keys. */
export interface ArchiveReader {
  readonly catalogue: Catalogue;
  /** Returns the position of the last archived event recorded at or before a time; 0 if there is none. */
  positionUntil(timeMs: number): Promise<number>;
  /** Returns the hash of the archived event at a position; undefined if that position is not archived. */
  hashAt(position: number): Promise<string | undefined>;
  findKey: FindArchivedKey;
  /**
   * Yields the archived keys of appends that ended within [from, to]. If a key is archived during the call, it may be
   * in this result and in that of the database.
   */
  keys(range: KeyRange): AsyncGenerator<readonly StoredKey[], void, void>;
  open: OpenSegments;
  /** Yields matching archived events in chunks, some of them empty. */
  chunks<Row>(query: ResolvedQuery, toRow: FromSegment<Row>): AsyncGenerator<Row[], void, void>;
}

export function createArchiveReader(catalogue: Catalogue, table: ArchiveTable, open: OpenSegments): ArchiveReader {
  /** Returns the segments that may hold matching events of the range, in the query's order. */
  async function findSegments({ stream, types, from, to, backwards }: ResolvedQuery): Promise<SegmentEntry[]> {
    const entries = catalogue.entries();
    const range = entries.slice(catalogue.locate(from), catalogue.locate(to) + 1);
    const places = stream === undefined ? undefined : await table.streamPlaces(stream);
    const held = places && new Set(places.map(({ position }) => catalogue.locate(position)).map((at) => entries[at]));
    const found = range.filter(
      (entry) => (held?.has(entry) ?? true) && (types?.some((type) => Object.hasOwn(entry.types, type)) ?? true),
    );
    return backwards ? found.toReversed() : found;
  }

  return {
    catalogue,
    open,
    findKey: (key) => findArchivedKey(table, catalogue, open, key),
    keys: (range) => readArchivedKeys(table, catalogue, open, range),
    async positionUntil(timeMs) {
      await catalogue.refresh();
      const entry = catalogue.entries().findLast(({ firstTime }) => firstTime <= timeMs);
      if (entry === undefined) return 0;
      const segment = await open(entry);
      const timeAt = (position: number): number => Number(toFields(segment.canonical(position))[5]);
      let [low, high] = [entry.first, entry.last];
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        if (timeAt(middle) <= timeMs) low = middle;
        else high = middle - 1;
      }
      return low;
    },
    async hashAt(position) {
      if (position > catalogue.end) await catalogue.refresh();
      if (position < 1 || position > catalogue.end) return undefined;
      const entry = catalogue.entries()[catalogue.locate(position)]!;
      return entry.last === position ? entry.hash : (await open(entry)).hash(position);
    },
    async *chunks(query, toRow) {
      const { from, to, backwards } = query;
      const takeRows = createTakeRows(query, toRow);
      let left = query.limit;
      for (const entry of await findSegments(query)) {
        const [low, high] = [Math.max(from, entry.first), Math.min(to, entry.last)];
        for (let done = 0; done <= high - low; done += CHUNK_EVENTS) {
          const last = Math.min(done + CHUNK_EVENTS - 1, high - low);
          const range = backwards ? [high - done, high - last] : [low + done, low + last];
          // The segment is opened again for each chunk, and not kept while the reader waits for its consumer: a
          // thousand stalled consumers would hold gigabytes.
          const rows = takeRows(await open(entry), range as [number, number], left);
          yield rows;
          left -= rows.length;
          if (left <= 0) return;
        }
      }
    },
  };
}

/**
 * Takes up to `limit` rows that match the query from one segment, from the position `first` to `last`, both included.
 * `first` is the greater one if the log is read backwards.
 */
type TakeRows<Row> = (segment: OpenSegment, range: readonly [first: number, last: number], limit: number) => Row[];

function createTakeRows<Row>({ stream, types }: ResolvedQuery, toRow: FromSegment<Row>): TakeRows<Row> {
  const wanted = types && new Set(types);
  const lines = types !== undefined && types.length <= SOUGHT_TYPES_MAX ? types.map(toLine) : undefined;
  return (segment, [first, last], limit) => {
    const rows: Row[] = [];
    const step = first <= last ? 1 : -1;
    for (let position = first; position !== last + step && rows.length < limit; position += step) {
      const canonical = segment.canonical(position);
      if (lines?.some((line) => canonical.includes(line)) === false) continue;
      const fields = toFields(canonical);
      if (stream !== undefined && fields[1] !== stream) continue;
      if (wanted === undefined || wanted.has(fields[4])) rows.push(toRow(segment, position, fields));
    }
    return rows;
  };
}

/**
 * Reads a query from segments and from the database as if all events were in one place; no chunk is empty, and other
 * work gets its turn. If events move into the archive meanwhile, what the database returned after the move is read
 * again.
 */
export async function* readThrough<Row extends { readonly position: number }>(
  archive: ArchiveReader,
  query: ResolvedQuery,
  toRow: FromSegment<Row>,
  readLive: (query: ResolvedQuery) => AsyncIterable<LiveChunk<Row>> | Iterable<LiveChunk<Row>>,
): AsyncGenerator<Row[], void, void> {
  const { backwards } = query;
  const { catalogue } = archive;
  let { from, to, limit } = query;

  /** Cuts rows to the query's limit, and moves the query's bounds past them. */
  function take(rows: Row[]): Row[] {
    const taken = rows.length > limit ? rows.slice(0, limit) : rows;
    limit -= taken.length;
    const last = taken.at(-1);
    if (last !== undefined && backwards) to = last.position - 1;
    else if (last !== undefined) from = last.position + 1;
    return taken;
  }

  async function* readArchived(end: number): AsyncGenerator<Row[], void, void> {
    const last = Math.min(to, end);
    if (from > last || limit <= 0) return;
    for await (const rows of archive.chunks({ ...query, from, to: last, limit }, toRow)) {
      if (rows.length > 0) yield take(rows);
      await endLongTurn();
    }
  }

  for (let isDone = limit <= 0; !isDone;) {
    const { end } = catalogue;
    if (!backwards) {
      yield* readArchived(end);
      from = Math.max(from, end + 1);
    }
    isDone = true;
    const lowest = Math.max(from, end + 1);
    if (lowest <= to && limit > 0) {
      for await (const { rows, archived } of readLive({ ...query, from: lowest, to, limit })) {
        if (archived > end) {
          await catalogue.extend(archived);
          isDone = false;
          break;
        }
        if (rows.length > 0) yield take(rows);
        await endLongTurn();
        if (limit <= 0) return;
      }
    }
    if (isDone && backwards) yield* readArchived(end);
  }
}
