import { DatabaseSync } from "node:sqlite";
import { StoreUnusable } from "../errors.ts";
import { isNotADatabase } from "./faults.ts";
import { createSchema, requireOurFormat } from "./schema.ts";
import { applyReaderSettings, applyWriterSettings, BUSY_TIMEOUT_MS, pragma, requireSqliteVersion } from "./settings.ts";

export interface WriterConnection {
  readonly db: DatabaseSync;
  readonly storeId: string;
}

/**
 * Opens the one connection that writes, and creates the tables in a new file.
 * Throws {@link StoreUnusable} for a file that is not a log, before anything in it is changed.
 */
export function openWriter(file: string, databaseBytesMax: number): WriterConnection {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    requireSqliteVersion(db);
    requireOurFormat(db);
    applyWriterSettings(db);
    const storeId = createSchema(db);
    limitSize(db, databaseBytesMax);
    return { db, storeId };
  } catch (error) {
    db.close();
    throw isNotADatabase(error) ? new StoreUnusable("the file is not an SQLite database", { cause: error }) : error;
  }
}

/** Opens a connection that cannot write. The writer must have opened the file before: it creates the shared memory. */
export function openReader(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  applyReaderSettings(db);
  return db;
}

/** From there on SQLite fails with SQLITE_FULL, as on a full disk. */
function limitSize(db: DatabaseSync, bytesMax: number): void {
  const pages = Math.floor(bytesMax / Number(pragma(db, "page_size")));
  db.exec(`PRAGMA max_page_count = ${Math.max(1, pages)}`);
}
