import { DatabaseSync } from "node:sqlite";
import type { Awaitable } from "../awaitable.ts";
import { DEFAULT_LIMITS } from "../limits.ts";
import type { Epoch, NewEvent, Recorded } from "../store.ts";
import { markAsCopy, writeEpochs } from "./epochs.ts";
import { createAdd } from "./import/add.ts";
import { createSchema } from "./schema.ts";
import { applyFillSettings, requireSqliteVersion } from "./settings.ts";

/** A log that is copied event by event. */
export interface CopySource {
  readonly id: string;
  readonly epochs: readonly Epoch[];
  readonly events: AsyncIterable<readonly Recorded<NewEvent>[]>;
  /** Some rows of a table that say nothing of later events, whose keys follow on a key, in the order of keys. */
  rowsAfter(table: CopiedTable, after: string): Awaitable<readonly Record<string, unknown>[]>;
}

export interface CopiedTable {
  readonly name: string;
  readonly key: string;
  readonly columns: string;
  /** The position up to which a row says something of the log. */
  readonly until: string;
}

/** Idempotency keys and snapshots of what the copy holds; leases would be of processes that know nothing of it. */
const TABLES: readonly CopiedTable[] = [
  { name: "idempotency_keys", key: "key", columns: "key, digest, first, last, version", until: "last" },
  { name: "snapshots", key: "name", columns: "name, version, position, state", until: "position" },
];

/** Fills a new database with a copy of a log that has all its events, whatever of them is archived there. */
export async function fillCopy(target: string, { id, epochs, events, rowsAfter }: CopySource): Promise<void> {
  const db = new DatabaseSync(target);
  try {
    requireSqliteVersion(db);
    applyFillSettings(db);
    createSchema(db, id);
    db.exec("BEGIN");
    writeEpochs(db, epochs);
    const add = createAdd(db, DEFAULT_LIMITS.eventBytes);
    for await (const batch of events) for (const event of batch) add(event);
    for (const table of TABLES) await copyRows(db, table, rowsAfter);
    markAsCopy(db);
    db.exec("COMMIT");
  } finally {
    db.close();
  }
}

async function copyRows(db: DatabaseSync, table: CopiedTable, rowsAfter: CopySource["rowsAfter"]): Promise<void> {
  const { name, key, columns } = table;
  const insert = db.prepare(`INSERT INTO ${name} (${columns}) VALUES (${columns.replaceAll(/\w+/g, "?")})`);
  for (let after = ""; ;) {
    const rows = await rowsAfter(table, after);
    for (const row of rows) insert.run(...(Object.values(row) as (string | number)[]));
    if (rows.length === 0) return;
    after = String(rows.at(-1)![key]);
  }
}
