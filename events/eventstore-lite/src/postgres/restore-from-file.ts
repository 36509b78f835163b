import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import type { Limits } from "../limits.ts";
import { readEpochs } from "../sqlite/epochs-begun-by-copies.ts";
import { createDatabaseReader, type DatabaseReader } from "../sqlite/read/database-reader.ts";
import { requireOurFormat } from "../sqlite/schema.ts";
import type { Head, NewEvent, Recorded } from "../event-store-interface.ts";
import type { Database } from "./database.ts";
import { createLog } from "./import-log.ts";

export interface PostgresRestoreOptions {
  /**
   * URL of the database, in the form that `openPostgresStore` takes; its role must have the right to create schemas.
   */
  readonly url: string;
  /** The place of the log: it must be unused, or hold a log without events. */
  readonly schema: string;
  /** A copy made by `backup`. It is only read, and no process may write to it meanwhile. */
  readonly file: string;
  readonly limits?: Partial<Limits>;
  /** The restore calls this with the number of events that it has copied so far. */
  readonly onProgress?: (copied: number) => void;
}

/** Number of rows that one query reads from the backup, and that one query inserts into PostgreSQL. */
const CHUNK_ROWS = 1_000;

/**
 * Restores a copy of a log, of either engine, in a new epoch; returns its head. The id, epochs and idempotency keys
 * stay, leases and snapshots do not. As with `importPostgresLog`, it is all or nothing, and checks every event.
 */
export async function restorePostgresLog({ file, onProgress, ...target }: PostgresRestoreOptions): Promise<Head> {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    requireOurFormat(db);
    const copy = createDatabaseReader(db);
    return await createLog(target, eventsOf(copy, onProgress ?? (() => {})), async (database, schema) => {
      await copyKeys(copy, database, schema);
      await copyLives(copy, database, schema);
    });
  } finally {
    db.close();
  }
}

const EVENTS = `
  SELECT e.position, s.name AS stream, e.version, t.name AS type, e.id, e.time, e.data, e.meta, e.hash
  FROM events e JOIN streams s ON s.id = e.stream JOIN types t ON t.id = e.type
  WHERE e.position > ? ORDER BY e.position LIMIT ${CHUNK_ROWS}`;

interface EventRow {
  readonly position: number;
  readonly stream: string;
  readonly version: number;
  readonly type: string;
  readonly id: string;
  readonly time: number;
  readonly data: string;
  readonly meta: string;
  readonly hash: Uint8Array;
}

async function* eventsOf(
  copy: DatabaseReader,
  onProgress: (copied: number) => void,
): AsyncGenerator<Recorded<NewEvent>, void, void> {
  for (let after = 0; ;) {
    const rows = copy.all(EVENTS, after) as unknown as EventRow[];
    for (const { time, data, meta, hash, ...names } of rows) {
      yield {
        ...names,
        time: new Date(time).toISOString(),
        data: JSON.parse(data) as NewEvent["data"],
        meta: JSON.parse(meta) as NewEvent["meta"],
        hash: Buffer.from(hash).toString("hex"),
      };
    }
    after = rows.at(-1)?.position ?? after;
    onProgress(after);
    if (rows.length < CHUNK_ROWS) return;
  }
}

const KEYS = `
  SELECT key, digest, first, last, version FROM idempotency_keys WHERE key > ? ORDER BY key LIMIT ${CHUNK_ROWS}`;

async function copyKeys(copy: DatabaseReader, database: Database, schema: string): Promise<void> {
  for (let after = ""; ;) {
    const rows = copy.all(KEYS, after);
    await database.run(
      (sql) => sql`
        INSERT INTO ${sql(schema)}.idempotency_keys (key, digest, first, last, version)
        SELECT key, digest, first, last, version FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (
          key text, digest text, first bigint, last bigint, version bigint
        )`,
    );
    if (rows.length < CHUNK_ROWS) return;
    after = String(rows.at(-1)!["key"]);
  }
}

async function copyLives(copy: DatabaseReader, database: Database, schema: string): Promise<void> {
  const info = copy.get("SELECT store FROM info");
  await database.run((sql) => sql`UPDATE ${sql(schema)}.info SET store = ${String(info!["store"])}`);
  await database.run((sql) => sql`DELETE FROM ${sql(schema)}.epochs`);
  for (const { id, after, begunAs } of readEpochs(copy)) {
    // The newest epoch of a copy has no id yet, because each log that continues from the copy gives it a different one.
    const own = id === "null" ? randomUUID() : id;
    await database.run(
      (sql) => sql`INSERT INTO ${sql(schema)}.epochs (id, after, begun_as) VALUES (${own}, ${after}, ${begunAs})`,
    );
    await database.run((sql) => sql`UPDATE ${sql(schema)}.turn SET epoch = ${own}`);
  }
}
