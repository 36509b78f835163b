import { randomUUID } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { Worker } from "node:worker_threads";
import { createPrivateFile } from "./private-file.ts";
import type { BackupOrder, BackupResult } from "./backup-thread.ts";

/**
 * Writes a consistent copy of the log to `file`, which must not exist. A copy made with `cp` while the log is in use
 * cannot be opened in half of the cases; this one holds exactly one moment of the log.
 *
 * The copy gets its name only once it is complete and fsynced.
 */
export async function backupTo(source: string, file: string): Promise<void> {
  refuseExisting(file);
  const partial = `${file}.${randomUUID()}.partial`;
  createPrivateFile(partial);
  try {
    await copy({ source, target: partial });
    fsyncPath(partial);
    refuseExisting(file);
    renameSync(partial, file);
    fsyncPath(dirname(file));
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

/** In a thread of its own: copying a large log takes minutes, and neither requests nor appends wait for it. */
async function copy(order: BackupOrder): Promise<void> {
  const worker = new Worker(new URL("./backup-thread.ts", import.meta.url), { workerData: order });
  const result = await new Promise<BackupResult>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  await worker.terminate();
  if (result.failed !== undefined) throw new Error(`the backup failed: ${result.failed}`);
}

function refuseExisting(file: string): void {
  if (existsSync(file)) throw new Error(`${file} exists already: a backup overwrites nothing`);
}

function fsyncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
