/**
 * Measures how many events a PostgreSQL server can insert at most: one prepared insert a batch, over one connection
 * that does nothing else.
 */
import { randomBytes } from "node:crypto";
import postgres from "postgres";
import type { NewEvent } from "../src/index.ts";

export interface RawConnection extends AsyncDisposable {
  /** Makes the columns of each batch before time is measured, and returns the function that inserts them durably. */
  prepare(events: readonly NewEvent[], streams: number, rowsPerTransaction: number): () => Promise<void>;
}

/** Number of positions reserved for each connection: so many that no two connections insert at the same position. */
const POSITIONS_EACH = 1_000_000_000;

/**
 * Opens a connection to a table with the columns and indexes of the log's, which the first connection creates. A raw
 * insert waits for no other writer, decides nothing and builds no hash chain.
 */
export async function openRawConnection(url: string, schema: string, number: number): Promise<RawConnection> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false });
  await sql`CREATE TABLE IF NOT EXISTS raw (LIKE ${sql(schema)}.events INCLUDING ALL)`;
  let position = number * POSITIONS_EACH;

  const insert = async (first: number, columns: readonly string[]): Promise<void> => {
    const [streams, ids, types, datas, metas, hashes] = columns as [string, string, string, string, string, string];
    await sql`
      INSERT INTO raw (position, version, time, stream, type, id, data, meta, hash)
      SELECT ${first}::bigint + at, ${first}::bigint + at, 1, stream, type, id, data, meta, decode(hash, 'hex')
      FROM unnest(string_to_array(${streams}, E'\n'), string_to_array(${ids}, E'\n'), string_to_array(${types}, E'\n'),
        string_to_array(${datas}, E'\n'), string_to_array(${metas}, E'\n'), string_to_array(${hashes}, E'\n')
      ) WITH ORDINALITY AS e (stream, id, type, data, meta, hash, at)`;
  };

  return {
    prepare(events, streams, rowsPerTransaction) {
      const batches = Array.from({ length: Math.ceil(events.length / rowsPerTransaction) }, (_, index) => {
        const start = index * rowsPerTransaction;
        const rows = events.slice(start, start + rowsPerTransaction).map(({ id, type, data, meta }, row) => {
          const stream = `raw-${number}-${row % streams}`;
          return [stream, id, type, JSON.stringify(data), JSON.stringify(meta), randomBytes(32).toString("hex")];
        });
        const first = position;
        position += rows.length;
        return { first, columns: rows[0]!.map((_, column) => rows.map((row) => row[column]).join("\n")) };
      });
      return async () => {
        for (const { first, columns } of batches) await insert(first, columns);
      };
    },
    [Symbol.asyncDispose]: () => sql.end(),
  };
}
