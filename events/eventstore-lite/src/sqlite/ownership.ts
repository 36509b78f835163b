import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreOwned, StoreUnusable } from "../errors.ts";
import { DEFAULT_LIMITS } from "../limits.ts";
import { openWriter } from "./connections.ts";
import { beginEpoch } from "./epochs-begun-by-copies.ts";
import { isBusy } from "./classify-errors.ts";
import { createBoundaries, createTransaction } from "./transaction.ts";
import { createPrivateFile, OWNER_ONLY } from "../write-private-file-durably.ts";

/** Locks that this process holds. Garbage collection would close a handle without references, and release its lock. */
const heldLocks = new Set<DatabaseSync>();

/**
 * Makes this process the log's owner until the returned function is called or the process dies. The lock is an
 * exclusive transaction on a small separate database, so commands can still use the log. Throws {@link StoreOwned}.
 */
export function takeOwnership(file: string, holder: string, nowMs: number): () => void {
  const lockFile = `${file}.lock`;
  // The file that names the lock's holder for people; its text is also in the error.
  const holderFile = `${file}.owner`;
  createPrivateFile(lockFile);
  const lock = new DatabaseSync(lockFile, { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if (isBusy(error)) throw new StoreOwned(readHolder(holderFile));
    throw new StoreUnusable(`${lockFile}: ${String(error)}`, { cause: error });
  }
  heldLocks.add(lock);
  const release = () => {
    heldLocks.delete(lock);
    lock.close();
  };
  try {
    writeFileSync(holderFile, describe(holder, nowMs), { mode: OWNER_ONLY });
  } catch (error) {
    release();
    throw new StoreUnusable(`${holderFile}: ${String(error)}`, { cause: error });
  }
  return () => {
    try {
      rmSync(holderFile, { force: true });
    } catch {
      // The file that names the lock's holder only informs people. If it cannot be removed, such as on a file system
      // that turned read-only, the lock is released all the same.
    }
    release();
  };
}

/**
 * Makes a log continue in a new epoch, because an operator knows that it is a copy. Throws what `openSqliteStore`
 * throws, and {@link StoreOwned} while a service uses the log.
 */
export function beginSqliteEpoch({ file, holder }: { readonly file: string; readonly holder: string }): void {
  const release = takeOwnership(file, holder, Date.now());
  try {
    const { db } = openWriter(file, DEFAULT_LIMITS.databaseBytes);
    try {
      createTransaction(createBoundaries(db))(() => beginEpoch(db, "operator"));
    } finally {
      db.close();
    }
  } finally {
    release();
  }
}

function describe(holder: string, nowMs: number): string {
  const about = `pid ${process.pid} since ${new Date(nowMs).toISOString()}`;
  return holder === "" ? about : `${holder} (${about})`;
}

function readHolder(holderFile: string): string {
  try {
    return readFileSync(holderFile, "utf8");
  } catch {
    // The owner has the lock, but has not written the file yet.
    return "a process that has just started";
  }
}
