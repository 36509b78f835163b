import { DatabaseSync } from "node:sqlite";
import { StoreBusy, StoreUnusable } from "../errors.ts";
import { isBusy, isNotADatabase } from "./classify-errors.ts";
import { createSchema, requireOurFormat } from "./schema.ts";
import {
  applyReaderSettings,
  applyWriterSettings,
  BUSY_TIMEOUT_MS,
  pragma,
  requireSqliteVersion,
} from "./connection-settings.ts";

/**
 * Time limit for opening and preparing a file, all attempts together. If another process keeps the write lock for
 * longer, opening fails with an error.
 */
const OPEN_WAIT_MS_MAX = BUSY_TIMEOUT_MS;
const OPEN_RETRY_MS = 20;

export interface WriterConnection {
  readonly db: DatabaseSync;
  readonly storeId: string;
}

/**
 * Opens the one connection that writes, and creates the tables in a new file. Throws {@link StoreUnusable} for a file
 * that is not a log, before changing it, and {@link StoreBusy} if another process keeps the write lock.
 */
export function openWriter(file: string, databaseBytesMax: number): WriterConnection {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    requireSqliteVersion(db);
    return retryWhileBusy(() => {
      requireOurFormat(db);
      applyWriterSettings(db);
      const storeId = createSchema(db);
      limitSize(db, databaseBytesMax);
      return { db, storeId };
    });
  } catch (error) {
    db.close();
    throw isNotADatabase(error) ? new StoreUnusable("the file is not an SQLite database", { cause: error }) : error;
  }
}

/**
 * Retries the preparation of a file, which can be repeated without harm. If two connections switch a new file to WAL at
 * once, SQLite fails without waiting for the busy time-out, because that could be a deadlock.
 */
function retryWhileBusy<Result>(prepare: () => Result): Result {
  const clock = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const endsAt = performance.now() + OPEN_WAIT_MS_MAX;
  for (;;) {
    try {
      return prepare();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() >= endsAt) throw new StoreBusy();
    }
    // Blocks this thread, which has nothing else to do until the file is open.
    Atomics.wait(clock, 0, 0, OPEN_RETRY_MS);
  }
}

/** The files that SQLite has open for a database; the database is the first. */
export function filesOf(file: string): readonly [string, ...string[]] {
  return [file, `${file}-wal`, `${file}-shm`];
}

/**
 * Opens a connection that cannot write. The writer must have opened the file before, because it creates the shared
 * memory.
 */
export function openReader(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  applyReaderSettings(db);
  return db;
}

/** Sets the size at which SQLite fails with SQLITE_FULL, as on a full disk. */
function limitSize(db: DatabaseSync, bytesMax: number): void {
  const pages = Math.floor(bytesMax / Number(pragma(db, "page_size")));
  db.exec(`PRAGMA max_page_count = ${Math.max(1, pages)}`);
}
