import { statSync } from "node:fs";
import { parentPort, Worker, workerData } from "node:worker_threads";
import type { Awaitable } from "../awaitable.ts";
import { BackupFailed } from "../errors.ts";
import type { Backup } from "../store.ts";
import { checkCopy } from "./check-copy.ts";
import { createDatabaseFile, refuseExisting } from "./new-file.ts";

export interface BackupOptions {
  readonly onProgress?: (checked: number) => void;
}

type BackupMessage = { readonly checked: number } | { readonly failed: string } | Backup;

/**
 * Writes a consistent copy of a log to `file`, which must not exist; `module` is the thread that does so, with
 * {@link answerBackup}, and gets `source` and the `target` to be written. A copy made with `cp` while the log is in use
 * cannot be opened in half of the cases; this one holds exactly one moment of the log.
 */
export function backupTo(module: URL, source: object, file: string, options: BackupOptions = {}): Promise<Backup> {
  return createDatabaseFile(
    file,
    () => refuseExisting(file),
    (target) => copyInThread(module, { ...source, target }, options),
  );
}

/** In a thread of its own: copying a large log takes minutes, and neither requests nor appends wait for it. */
async function copyInThread(module: URL, order: object, { onProgress }: BackupOptions): Promise<Backup> {
  const worker = new Worker(module, { workerData: order });
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

/** In the thread: makes the copy, and answers once it is found whole. */
export async function answerBackup(copy: (order: never) => Awaitable<void>): Promise<void> {
  const order = workerData as { readonly target: string };
  const post = (message: BackupMessage): void => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    parentPort?.postMessage(message);
  };
  try {
    await copy(order as never);
    const head = await checkCopy(order.target, (checked) => post({ checked }));
    post({ head, bytes: statSync(order.target).size });
  } catch (error) {
    post({ failed: error instanceof Error ? error.message : String(error) });
  }
}
