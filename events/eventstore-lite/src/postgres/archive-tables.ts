import type { ArchivedStream, ArchiveTable, KeyRange, SegmentEntry, StreamPlace } from "../segments/catalogue.ts";
import { StoreUnusable } from "../errors.ts";
import type { StoredKey } from "../event-store-interface.ts";
import type { Reader } from "./database-reader.ts";

/** Maximum number of archived streams that one query returns. */
const CHUNK_STREAMS = 1_024;

export async function readArchiveEnd(reader: Reader): Promise<number> {
  const row = await reader.get<{ last: number | null }>("SELECT max(last) AS last FROM log.segments");
  return row?.last ?? 0;
}

/** Maximum number of idempotency keys that one query returns. */
const CHUNK_KEYS = 4_096;

/** Yields the idempotency keys that the database holds whole, and not only as hashes, in the order of the keys. */
export async function* readWholeKeys(
  reader: Reader,
  { from, to }: KeyRange,
): AsyncGenerator<readonly StoredKey[], void, void> {
  for (let after = ""; ;) {
    const rows = await reader.all<StoredKey>(
      `SELECT key, digest, first, last, version FROM log.idempotency_keys
       WHERE key > $1 AND last BETWEEN $2 AND $3 ORDER BY key LIMIT ${CHUNK_KEYS}`,
      after,
      from,
      to,
    );
    if (rows.length > 0) yield rows;
    if (rows.length < CHUNK_KEYS) return;
    after = rows.at(-1)!.key;
  }
}

/**
 * Checks the right to call the functions that remove archived events and keys from the database. Throws
 * {@link StoreUnusable}.
 */
async function requireRight(reader: Reader): Promise<void> {
  const missing = await reader.get<{ grant: string }>(
    `SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', string_agg(p.oid::regprocedure::text, ', '), current_user) AS grant
     FROM log.info i JOIN pg_class c ON c.oid = i.tableoid JOIN pg_proc p ON p.pronamespace = c.relnamespace
     WHERE p.proname IN ('record_segment', 'record_keys') AND NOT has_function_privilege(p.oid, 'EXECUTE')
     HAVING count(*) > 0`,
  );
  if (missing !== undefined) throw new StoreUnusable(`the role may not archive: ${missing.grant}`);
}

export function createArchiveTable(reader: Reader): ArchiveTable {
  return {
    end: () => readArchiveEnd(reader),
    async segmentsAfter(position) {
      const rows = await reader.all<Omit<SegmentEntry, "types"> & { readonly types: string }>(
        `SELECT first, last, name, bytes, sha256, encode(hash, 'hex') AS hash, first_time AS "firstTime",
           last_time AS "lastTime", types, keys_from AS "keysFrom"
         FROM log.segments WHERE last > $1 ORDER BY last`,
        position,
      );
      return rows.map((row) => ({ ...row, types: JSON.parse(row.types) as SegmentEntry["types"] }));
    },
    requireRight: () => requireRight(reader),
    wholeKeys: (range) => readWholeKeys(reader, range),
    async keySegments(keys) {
      const segments = keys.map((): number[] => []);
      const rows = await reader.all<{ at: number; segment: number }>(
        `SELECT k.at, segment
         FROM jsonb_array_elements_text($1::text::jsonb) WITH ORDINALITY AS k (key, at), log.key_segments(k.key) AS segment`,
        JSON.stringify(keys),
      );
      for (const { at, segment } of rows) segments[at - 1]!.push(segment);
      return segments;
    },
    streamPlaces: (stream) =>
      reader.all<StreamPlace>(
        "SELECT position, version FROM log.archived_streams WHERE stream = $1 ORDER BY position",
        stream,
      ),
    streamsAfter: (name) =>
      reader.all<ArchivedStream>(
        `SELECT stream, max(version) AS version, max(position) AS position, count(*) AS segments
         FROM log.archived_streams WHERE stream > $1 GROUP BY stream ORDER BY stream LIMIT ${CHUNK_STREAMS}`,
        name,
      ),
  };
}
