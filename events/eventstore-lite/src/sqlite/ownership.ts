import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreOwned, StoreUnusable } from "../errors.ts";
import { DEFAULT_LIMITS } from "../limits.ts";
import { openWriter } from "./connections.ts";
import { beginEpoch } from "./epochs.ts";
import { isBusy } from "./faults.ts";
import { createBoundaries, createTransaction } from "./transaction.ts";
import { createPrivateFile, OWNER_ONLY } from "../private-file.ts";

/** Garbage collection closes a handle without references, and its lock with it: these live as long as the process. */
const heldLocks = new Set<DatabaseSync>();

/**
 * Makes this process the log's owner until the returned function is called or the process dies, however it dies.
 * Throws {@link StoreOwned} with what the owner wrote of itself.
 *
 * The lock is an exclusive transaction on a small database of its own, so that commands can still read the log and
 * append to it. The text file beside it only names, for people, who holds the lock.
 */
export function takeOwnership(file: string, holder: string, nowMs: number): () => void {
  const lockFile = `${file}.lock`;
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
      // It only informs people; a file system that turned read-only must not keep the log owned.
    }
    release();
  };
}

/**
 * Has a log go on in an epoch of its own, as a copy does: an operator knows that it is one. Throws what `openSqliteStore`
 * throws, {@link StoreOwned} while a service has it.
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
    // It has the lock and did not write the file yet.
    return "a process that has just started";
  }
}
