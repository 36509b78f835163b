import { DatabaseSync } from "node:sqlite";
import { StoreBusy, StoreUnusable } from "../errors.ts";
import { isBusy, isNotADatabase } from "./faults.ts";
import { createSchema, requireOurFormat } from "./schema.ts";
import { applyReaderSettings, applyWriterSettings, BUSY_TIMEOUT_MS, pragma, requireSqliteVersion } from "./settings.ts";

/**
 * Switching a new file to WAL takes some milliseconds. An attempt may wait for the busy time-out by itself, so the sum is
 * bounded: a process that holds the write lock for longer is reported, not waited for in silence.
 */
const OPEN_WAIT_MS_MAX = BUSY_TIMEOUT_MS;
const OPEN_RETRY_MS = 20;

export interface WriterConnection {
  readonly db: DatabaseSync;
  readonly storeId: string;
}

/**
 * Opens the one connection that writes, and creates the tables in a new file.
 * Throws {@link StoreUnusable} for a file that is not a log, before anything in it is changed; {@link StoreBusy} when
 * another process keeps the write lock.
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
 * SQLite does not wait, whatever the busy time-out, when two connections turn a new file into WAL mode at once: that
 * could be a deadlock. Preparing a file is the same done once or twice, so it is simply done again.
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
    // This runs in a thread of its own, which has nothing else to do until the file is open.
    Atomics.wait(clock, 0, 0, OPEN_RETRY_MS);
  }
}

/** The files that SQLite has open for a database, which comes first. */
export function filesOf(file: string): readonly [string, ...string[]] {
  return [file, `${file}-wal`, `${file}-shm`];
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
