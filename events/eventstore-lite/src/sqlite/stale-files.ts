import { closeSync, existsSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { StoreUnusable } from "../errors.ts";

/** Where a database's header says whether it is written through a write-ahead log (https://sqlite.org/fileformat.html). */
const WRITE_VERSION_AT = 18;
const ROLLBACK_JOURNAL = 1;

/** Files that a store of this process has open, and how often. */
const openFiles = new Map<string, number>();

/**
 * Throws {@link StoreUnusable} when a copy was put in a log's place, and the log's write-ahead log was left beside it:
 * SQLite would play the old log's last events into the copy, without a word. Copies made by `backup` have never had a
 * write-ahead log, and SQLite makes none before the header says so.
 *
 * To be called before the file is opened, and its result once it is closed. While this process has the file open the
 * check is left out: closing any descriptor of a file drops every lock that the process holds on it.
 */
export function refuseStaleFiles(file: string): () => void {
  const path = realpathSync(file);
  const others = openFiles.get(path) ?? 0;
  if (others === 0 && hasForeignWal(path)) {
    throw new StoreUnusable(
      `${file} is a copy, but ${file}-wal is of the log that was there before: move that and ${file}-shm away`,
    );
  }
  openFiles.set(path, others + 1);
  return () => {
    const left = (openFiles.get(path) ?? 1) - 1;
    if (left === 0) openFiles.delete(path);
    else openFiles.set(path, left);
  };
}

function hasForeignWal(file: string): boolean {
  const wal = `${file}-wal`;
  return existsSync(wal) && statSync(wal).size > 0 && writeVersion(file) === ROLLBACK_JOURNAL;
}

function writeVersion(file: string): number | undefined {
  const descriptor = openSync(file, "r");
  try {
    const header = Buffer.alloc(WRITE_VERSION_AT + 1);
    const read = readSync(descriptor, header, 0, header.length, 0);
    return read === header.length ? header[WRITE_VERSION_AT] : undefined;
  } finally {
    closeSync(descriptor);
  }
}
