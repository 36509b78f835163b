import { closeSync, existsSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { StoreUnusable } from "../errors.ts";

/**
 * Offset in a database's header that says if writes go through a write-ahead log (https://sqlite.org/fileformat.html).
 */
const WRITE_VERSION_AT = 18;
const ROLLBACK_JOURNAL = 1;

/** Files that stores of this process have open, and how often. */
const openFiles = new Map<string, number>();

/**
 * Throws {@link StoreUnusable} if a copy was put in a log's place, next to the log's write-ahead log: SQLite would
 * silently replay the old log's last events into the copy. Call it before the file is opened, and its result once it is
 * closed.
 */
export function refuseStaleFiles(file: string): () => void {
  const path = realpathSync(file);
  const others = openFiles.get(path) ?? 0;
  // The check is skipped while this process has the file open: closing any descriptor of the file drops all locks of
  // this process on it.
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

/**
 * True if a write-ahead log lies next to the file although the header says that the file uses none. The write-ahead log
 * is then that of another database, because SQLite changes the header before it makes one.
 */
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
