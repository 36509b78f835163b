import type { DatabaseSync } from "node:sqlite";
import { StoreUnusable } from "../errors.ts";

/** How long a statement waits for another process's lock before it fails with SQLITE_BUSY. */
export const BUSY_TIMEOUT_MS = 2_000;

/**
 * Pages in the write-ahead log after which a commit also checkpoints: SQLite's default, measured as safe in power cuts.
 */
const CHECKPOINT_PAGES = 1_000;

/**
 * Page size of a new file. A commit writes whole pages: with twice SQLite's default, a batch of 1,000 events takes 0.8
 * of the time and one of 64 as long as before; with four times, scattered small appends would write too much.
 */
const PAGE_BYTES = 8_192;

/** Size to which the write-ahead log is cut after a checkpoint that found it larger. */
const WAL_BYTES_KEPT = 64 * 1024 * 1024;

/**
 * Oldest SQLite that may open a log. Older versions can corrupt it in WAL mode if two connections checkpoint at once
 * (fixed in 3.51.3).
 */
const SQLITE_VERSION_MIN = [3, 51, 3] as const;

type Setting = readonly [name: string, value: string | number];

const READER_SETTINGS: readonly Setting[] = [
  ["busy_timeout", BUSY_TIMEOUT_MS],
  // Keeps SQLite from calling functions or tables with side effects that an attacker has put into the schema.
  ["trusted_schema", 0],
  // Lets SQLite notice some damaged pages before it uses them.
  ["cell_size_check", 1],
];

const WRITER_SETTINGS: readonly Setting[] = [
  ...READER_SETTINGS,
  ["journal_mode", "wal"],
  // 2 means FULL: fsync at every commit. With NORMAL, a power cut would lose acknowledged events.
  ["synchronous", 2],
  ["foreign_keys", 0],
  ["wal_autocheckpoint", CHECKPOINT_PAGES],
  ["journal_size_limit", WAL_BYTES_KEPT],
];

export function applyReaderSettings(db: DatabaseSync): void {
  for (const setting of READER_SETTINGS) apply(db, setting);
}

export function applyWriterSettings(db: DatabaseSync): void {
  db.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  for (const setting of WRITER_SETTINGS) apply(db, setting);
}

/**
 * SQLite settings for filling a new log in a file that gets its final name only when complete. After a crash the file
 * is discarded, so no write to it has to be durable.
 */
const FILL_SETTINGS: readonly Setting[] = [
  ["journal_mode", "memory"],
  ["synchronous", 0],
  ["foreign_keys", 0],
  // Cache size in KiB, which SQLite expects as a negative number. Inserts reach many places of the indexes at once, and
  // SQLite's default of 2 MiB holds too few of them.
  ["cache_size", -65_536],
];

export function applyFillSettings(db: DatabaseSync): void {
  db.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  for (const setting of FILL_SETTINGS) apply(db, setting);
}

/**
 * Sets a value and reads it back: SQLite ignores settings that it does not know, and WAL is refused on some file
 * systems.
 */
function apply(db: DatabaseSync, [name, value]: Setting): void {
  db.exec(`PRAGMA ${name} = ${value}`);
  const actual = pragma(db, name);
  if (actual !== value) throw new StoreUnusable(`SQLite refused ${name}=${value}: it is ${String(actual)}`);
}

/** Returns the single value with which SQLite answers `PRAGMA name`. */
export function pragma(db: DatabaseSync, name: string): unknown {
  return Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
}

/** Throws {@link StoreUnusable} when the runtime's SQLite is older than 3.51.3. */
export function requireSqliteVersion(db: DatabaseSync): void {
  const version = String(db.prepare("SELECT sqlite_version() AS version").get()?.["version"]);
  const parts = version.split(".").map(Number);
  for (const [index, wanted] of SQLITE_VERSION_MIN.entries()) {
    const part = parts[index] ?? 0;
    if (part > wanted) return;
    if (part < wanted)
      throw new StoreUnusable(`SQLite ${version} is too old: ${SQLITE_VERSION_MIN.join(".")} is needed`);
  }
}
