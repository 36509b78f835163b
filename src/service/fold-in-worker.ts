import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { RawEnvironment } from "../config/environment.ts";
import type { PartOrder } from "../log/rebuild-projections.ts";

export interface ThreadOrder extends PartOrder {
  readonly env: RawEnvironment;
}

/**
 * Folds a part of a projection's rebuild in a worker thread, which opens the log by the same settings. Resolves once
 * the thread has stored its work, or the finished part of it after an interrupt. Rejects if the thread failed.
 */
export async function foldInWorker(order: ThreadOrder, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const worker = new Worker(new URL("./fold-thread.ts", import.meta.url), { workerData: order });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  const interrupt = (): void => worker.postMessage("interrupt");
  signal.addEventListener("abort", interrupt, { once: true });
  try {
    await once(worker, "exit");
  } finally {
    signal.removeEventListener("abort", interrupt);
  }
}
