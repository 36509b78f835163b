import { parentPort, Worker, workerData } from "node:worker_threads";
import { StoreError, type StoreErrorCode } from "./errors.ts";

/**
 * Message from a task's thread to the thread that started it: progress, the name of a file that the task needs, a
 * failure, or the task's answer. `code`: code of the {@link StoreError} that made the task fail.
 */
type Message<Answer> =
  | { readonly checked: number }
  | { readonly wanted: string }
  | { readonly failed: string; readonly code: StoreErrorCode | undefined }
  | { readonly answer: Answer };

/** The task failed, or its thread ended. */
export class TaskFailed extends Error {
  readonly code: StoreErrorCode | undefined;
  constructor(reason: string, code?: StoreErrorCode) {
    super(reason);
    this.code = code;
  }
}

/** Callbacks of a long task for the code that starts it. */
export interface TaskOptions {
  readonly onProgress?: ((checked: number) => void) | undefined;
  /**
   * Reads a segment's file for the task. Runs in the thread that started the task, because a worker thread cannot use
   * the storage object of that thread.
   */
  readonly fetchFile?: FetchFile | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Reads a file by its name; undefined if there is no such file. */
export type FetchFile = (name: string) => Promise<Uint8Array | undefined>;

/**
 * Runs one long task in a separate thread, so that requests and appends do not wait for it. `module` is the thread,
 * which answers with {@link answerTask}. Throws {@link TaskFailed}, and the signal's reason once it aborts.
 */
export async function runTask<Answer>(
  module: URL,
  order: object,
  { onProgress, fetchFile, signal }: TaskOptions,
): Promise<Answer> {
  signal?.throwIfAborted();
  const worker = new Worker(module, { workerData: order });
  try {
    return await new Promise<Answer>((resolve, reject) => {
      worker.on("message", (message: Message<Answer>) => {
        if ("checked" in message) onProgress?.(message.checked);
        else if ("wanted" in message) answerWith(worker, fetchFile?.(message.wanted)).catch(reject);
        else if ("failed" in message) reject(new TaskFailed(message.failed, message.code));
        else resolve(message.answer);
      });
      worker.once("error", reject);
      worker.once("exit", (code) => reject(new TaskFailed(`its thread ended with code ${code}`)));
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  } finally {
    await worker.terminate();
  }
}

async function answerWith(worker: Worker, file: Promise<Uint8Array | undefined> | undefined): Promise<void> {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  worker.postMessage(await file);
}

/** Runs the task in its thread, and answers. It asks for one file at a time. */
export async function answerTask<Answer>(
  work: (order: never, onProgress: (checked: number) => void, fetchFile: FetchFile) => Promise<Answer>,
): Promise<void> {
  const post = (message: Message<Answer>): void => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    parentPort?.postMessage(message);
  };
  const fetchFile: FetchFile = (name) =>
    new Promise((resolve) => {
      parentPort?.once("message", resolve);
      post({ wanted: name });
    });
  try {
    post({ answer: await work(workerData as never, (checked) => post({ checked }), fetchFile) });
  } catch (error) {
    const failed = error instanceof Error ? error.message : String(error);
    post({ failed, code: error instanceof StoreError ? error.code : undefined });
  }
}
