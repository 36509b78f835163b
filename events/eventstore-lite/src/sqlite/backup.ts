import { statSync } from "node:fs";
import type { Awaitable } from "../value-or-promise.ts";
import { BackupFailed } from "../errors.ts";
import type { Backup } from "../event-store-interface.ts";
import { answerTask, type FetchFile, runTask, TaskFailed } from "../thread-task.ts";
import { checkCopy } from "./check-copy.ts";
import { createDatabaseFile, refuseExisting } from "./create-database-file-whole.ts";

export interface BackupOptions {
  readonly onProgress?: (checked: number) => void;
  /** Reads the file of a segment from the log's archive. */
  readonly fetchFile?: FetchFile;
}

/**
 * Writes a consistent copy of a log to the new `file`, while the log is in use. `module` is the code of a thread that
 * calls {@link answerBackup}; it gets the members of `source`, and the path `target` to write to.
 */
export function backupTo(module: URL, source: object, file: string, options: BackupOptions = {}): Promise<Backup> {
  return createDatabaseFile(
    file,
    () => refuseExisting(file),
    async (target) => {
      try {
        return await runTask<Backup>(module, { ...source, target }, options);
      } catch (error) {
        if (error instanceof TaskFailed) throw new BackupFailed(`the backup failed: ${error.message}`);
        throw error;
      }
    },
  );
}

/**
 * Makes the backup in the worker thread that calls this function, and sends the result to the thread that started it
 * once the copy is verified.
 */
export function answerBackup(copy: (order: never, fetchFile: FetchFile) => Awaitable<void>): Promise<void> {
  return answerTask(async (order: { readonly target: string }, onProgress, fetchFile): Promise<Backup> => {
    await copy(order as never, fetchFile);
    const head = await checkCopy(order.target, onProgress);
    return { head, bytes: statSync(order.target).size };
  });
}
