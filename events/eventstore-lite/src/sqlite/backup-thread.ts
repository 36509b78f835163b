// Copies a log with VACUUM INTO and looks whether the copy is whole; started by backup.ts.
import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Backup, Head } from "../store.ts";
import { openReader } from "./connections.ts";
import { markAsCopy } from "./epochs.ts";
import { createDatabaseReader } from "./read/database-reader.ts";
import { pragma } from "./settings.ts";
import { createVerifier } from "./verify/verify.ts";

export interface BackupOrder {
  readonly source: string;
  readonly target: string;
}

export type BackupMessage = { readonly checked: number } | { readonly failed: string } | Backup;

async function backup({ source, target }: BackupOrder): Promise<Backup> {
  copy(source, target);
  mark(target);
  return { head: await check(target), bytes: statSync(target).size };
}

function copy(source: string, target: string): void {
  const db = openReader(source);
  try {
    db.prepare("VACUUM INTO ?").run(target);
  } finally {
    db.close();
  }
}

function mark(target: string): void {
  const db = new DatabaseSync(target);
  try {
    // Nobody knows the file yet, and a crash leaves nothing of it: a journal would only be left behind.
    db.exec("PRAGMA journal_mode = MEMORY");
    markAsCopy(db);
  } finally {
    db.close();
  }
}

/** Pages and indexes by SQLite, the events by their chain. A log that cannot be read throughout is no backup. */
async function check(target: string): Promise<Head> {
  const db = openReader(target);
  try {
    const found = pragma(db, "integrity_check");
    if (found !== "ok") throw new Error(String(found));
    const verifier = createVerifier(target, createDatabaseReader(db));
    const { head, fault } = await verifier.verify({ onProgress: (checked) => tell({ checked }) });
    if (fault !== undefined) throw new Error(`position ${fault.position}: ${fault.reason}`);
    return head;
  } finally {
    db.close();
  }
}

function tell(message: BackupMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  parentPort?.postMessage(message);
}

try {
  tell(await backup(workerData as BackupOrder));
} catch (error) {
  tell({ failed: error instanceof Error ? error.message : String(error) });
}
