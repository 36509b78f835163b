// Copies a log with VACUUM INTO; started by backup.ts.
import { parentPort, workerData } from "node:worker_threads";
import { openReader } from "./connections.ts";

export interface BackupOrder {
  readonly source: string;
  readonly target: string;
}

export interface BackupResult {
  readonly failed?: string;
}

function copy({ source, target }: BackupOrder): BackupResult {
  const db = openReader(source);
  try {
    db.prepare("VACUUM INTO ?").run(target);
    return {};
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  } finally {
    db.close();
  }
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
parentPort?.postMessage(copy(workerData as BackupOrder));
