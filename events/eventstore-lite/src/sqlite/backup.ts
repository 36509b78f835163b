import { Worker } from "node:worker_threads";
import { BackupFailed } from "../errors.ts";
import type { Backup } from "../store.ts";
import type { BackupMessage, BackupOrder } from "./backup-thread.ts";
import { createDatabaseFile, refuseExisting } from "./new-file.ts";

export interface BackupOptions {
  readonly onProgress?: (checked: number) => void;
}

/**
 * Writes a consistent copy of the log to `file`, which must not exist. A copy made with `cp` while the log is in use
 * cannot be opened in half of the cases; this one holds exactly one moment of the log.
 */
export function backupTo(source: string, file: string, options: BackupOptions = {}): Promise<Backup> {
  return createDatabaseFile(
    file,
    () => refuseExisting(file),
    (target) => copy({ source, target }, options),
  );
}

/** In a thread of its own: copying a large log takes minutes, and neither requests nor appends wait for it. */
async function copy(order: BackupOrder, { onProgress }: BackupOptions): Promise<Backup> {
  const worker = new Worker(new URL("./backup-thread.ts", import.meta.url), { workerData: order });
  try {
    return await new Promise<Backup>((resolve, reject) => {
      worker.on("message", (message: BackupMessage) => {
        if ("checked" in message) onProgress?.(message.checked);
        else if ("failed" in message) reject(new BackupFailed(`the backup failed: ${message.failed}`));
        else resolve(message);
      });
      worker.once("error", reject);
      worker.once("exit", (code) => reject(new BackupFailed(`the backup's thread ended with code ${code}`)));
    });
  } finally {
    await worker.terminate();
  }
}
