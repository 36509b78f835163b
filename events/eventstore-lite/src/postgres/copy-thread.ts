// Copies a log into an SQLite file and looks whether the copy is whole; started by open.ts.
import { DatabaseSync } from "node:sqlite";
import { createDecode, identityCodec } from "../codec.ts";
import type { Epoch } from "../store.ts";
import { DEFAULT_LIMITS } from "../limits.ts";
import { answerBackup } from "../sqlite/backup.ts";
import { markAsCopy, writeEpochs } from "../sqlite/epochs.ts";
import { createAdd } from "../sqlite/import/add.ts";
import { createSchema } from "../sqlite/schema.ts";
import { applyFillSettings, requireSqliteVersion } from "../sqlite/settings.ts";
import { lastPosition } from "./heads.ts";
import { readBatches } from "./read.ts";
import { openReader, type Reader } from "./reader.ts";

export interface CopyOrder {
  readonly url: string;
  readonly schema: string;
  readonly storeId: string;
  readonly epochs: readonly Epoch[];
  readonly target: string;
}

/** Rows that one query answers. */
const CHUNK_ROWS = 4_096;

/** Idempotency keys and snapshots of what the copy holds; leases would be of processes that know nothing of it. */
const TABLES = [
  { name: "idempotency_keys", key: "key", columns: "key, digest, first, last, version", until: "last" },
  { name: "snapshots", key: "name", columns: "name, version, position, state", until: "position" },
];

await answerBackup(async ({ url, schema, storeId, epochs, target }: CopyOrder) => {
  const reader = openReader(url, schema);
  const db = new DatabaseSync(target);
  try {
    requireSqliteVersion(db);
    applyFillSettings(db);
    createSchema(db, storeId);
    db.exec("BEGIN");
    writeEpochs(db, epochs);
    const add = createAdd(db, DEFAULT_LIMITS.eventBytes);
    // Everything else is read as far as this position too: later appends are not of the copy's moment.
    const to = await lastPosition(reader);
    for await (const events of readBatches(reader, createDecode(identityCodec()), { to }))
      for (const event of events) add(event);
    for (const table of TABLES) await copyRows(reader, db, table, to);
    markAsCopy(db);
    db.exec("COMMIT");
  } finally {
    db.close();
    await reader.close();
  }
});

async function copyRows(
  reader: Reader,
  db: DatabaseSync,
  { name, key, columns, until }: (typeof TABLES)[number],
  to: number,
): Promise<void> {
  const insert = db.prepare(`INSERT INTO ${name} (${columns}) VALUES (${columns.replaceAll(/\w+/g, "?")})`);
  for (let after = ""; ;) {
    const rows = await reader.all<Record<string, string | number>>(
      `SELECT ${columns} FROM log.${name} WHERE ${key} > $1 AND ${until} <= $2 ORDER BY ${key} LIMIT ${CHUNK_ROWS}`,
      after,
      to,
    );
    for (const row of rows) insert.run(...Object.values(row));
    if (rows.length < CHUNK_ROWS) return;
    after = String(rows.at(-1)![key]);
  }
}
