import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { ServiceError } from "../../platform/service-error.ts";
import type { SuppressionRow } from "../parse-imported-lists.ts";
import type { ImportedRow } from "./unique-recipients.ts";
import type { ReadReply, ReadTask, Remarks } from "./read-file-thread.ts";

/** Content of a file: the rows that can be imported, and remarks on others, of which only some are kept. */
export interface ListRead<Row> extends Remarks {
  readonly rows: readonly Row[];
}

/** Maximum time to read a file, in ms. The largest file takes a second or two. */
export const READ_MS_MAX = 60_000;

/**
 * Reads recipients or suppressions in a separate thread, because ten megabytes take a second. The thread has ended when
 * the promise settles. Throws a ServiceError (invalid) for an unusable or slow file, and the reason of an aborted
 * signal.
 */
export async function readInWorker<Task extends ReadTask>(
  task: Task,
  signal: AbortSignal,
  msMax: number = READ_MS_MAX,
): Promise<ListRead<RowOf<Task>>> {
  signal.throwIfAborted();
  const deadline = new AbortController();
  const tooLong = `reading the file takes longer than ${msMax / 1000} seconds: split the file`;
  const timer = setTimeout(() => deadline.abort(new ServiceError("invalid", tooLong)), msMax);
  const givenUp = AbortSignal.any([signal, deadline.signal]);
  const worker = new Worker(new URL("./read-file-thread.ts", import.meta.url), { workerData: task });
  const ended = once(worker, "exit").then(() => {
    throw new Error("the thread that reads recipients ended by itself");
  });
  ended.catch(() => {});
  const stopped = once(givenUp, "abort").then(() => givenUp.throwIfAborted());
  stopped.catch(() => {});
  const next = async (): Promise<ReadReply<RowOf<Task>>> => {
    const reply = once(worker, "message");
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    worker.postMessage("next");
    const [message] = (await Promise.race([reply, ended, stopped])) as [ReadReply<RowOf<Task>>];
    return message;
  };
  try {
    const rows: RowOf<Task>[] = [];
    for (;;) {
      const reply = await next();
      if ("fault" in reply) throw new ServiceError("invalid", reply.fault);
      if ("rows" in reply) rows.push(...reply.rows);
      else return { rows, ...reply };
    }
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

export type RowOf<Task extends ReadTask> = Task extends { readonly hashKey: string } ? SuppressionRow : ImportedRow;
