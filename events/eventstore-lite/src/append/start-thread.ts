import { Worker } from "node:worker_threads";
import { StoreBusy, StoreUnusable } from "../errors.ts";
import type { AwayNotice, Notice, Piece, Reply, Request } from "./messages.ts";
import type { Started } from "./serve-thread.ts";

/** The writer thread, seen from the request thread. */
export interface Thread {
  readonly storeId: string;
  send(message: Request | Piece): void;
  /** Ends the writer thread without closing its database; after `close`, keeps the thread for another store. */
  terminate(): Promise<void>;
}

export interface ThreadListener {
  onReply(reply: Reply): void;
  /** The writer thread reports by this that another process has appended to the log. */
  onNotice(notice: Notice): void;
  onAway?(notice: AwayNotice): void;
  /** Runs when the writer thread has died; its last requests get no reply. */
  onCrash(error: Error): void;
}

/** Maximum number of threads of a module that wait for another store after theirs was closed. */
const IDLE_THREADS_MAX = 4;

/** Threads whose store was closed, by module. Starting a new thread costs ten times the processor time of using one. */
const idle = new Map<string, Worker[]>();

/** Takes an idle thread of the module, or starts one. */
function takeWorker(module: URL): Worker {
  const kept = idle.get(module.href)?.pop();
  if (kept !== undefined) {
    kept.ref();
    return kept;
  }
  const worker = new Worker(module);
  const forget = (): void => {
    const all = idle.get(module.href) ?? [];
    if (all.includes(worker)) all.splice(all.indexOf(worker), 1);
  };
  worker.on("error", forget);
  worker.on("exit", forget);
  return worker;
}

/** Keeps a thread for another store; false if enough threads are idle. An idle thread keeps no process alive. */
function keepWorker(module: URL, worker: Worker): boolean {
  const all = idle.get(module.href) ?? [];
  if (all.length >= IDLE_THREADS_MAX) return false;
  worker.unref();
  idle.set(module.href, [...all, worker]);
  return true;
}

/**
 * Starts the writer thread of an engine, with `options` of the log, or takes an idle one. Throws {@link StoreUnusable},
 * whose message begins with the log's name, if it cannot open the log, and {@link StoreBusy} if it cannot do so now.
 */
export async function startThread(
  module: URL,
  log: string,
  options: object,
  listener: ThreadListener,
): Promise<Thread> {
  const worker = takeWorker(module);
  const started = await open(worker, options);
  if ("refused" in started) {
    await worker.terminate();
    if (started.isBusy) throw new StoreBusy();
    throw new StoreUnusable(`${log}: ${started.refused}`);
  }
  let isClosed = false;
  const onMessage = (message: Reply | Notice | AwayNotice): void => {
    if (message.kind === "notice") listener.onNotice(message);
    else if (message.kind === "away") listener.onAway?.(message);
    else {
      isClosed ||= message.kind === "done" && message.isClosed === true;
      listener.onReply(message);
    }
  };
  const onError = (error: Error): void => listener.onCrash(error);
  const onExit = (code: number): void => listener.onCrash(new Error(`the writer thread ended with code ${code}`));
  worker.on("message", onMessage).on("error", onError).on("exit", onExit);
  return {
    storeId: started.storeId,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    send: (message) => worker.postMessage(message),
    async terminate() {
      worker.off("exit", onExit);
      const isKept = isClosed && keepWorker(module, worker);
      if (isKept) worker.off("message", onMessage).off("error", onError);
      else await worker.terminate();
    },
  };
}

/** Sends a thread the options of a log, and returns its answer. Rejects with the error of a thread that died. */
async function open(worker: Worker, options: object): Promise<Started> {
  const { promise, resolve, reject } = Promise.withResolvers<Started>();
  worker.once("message", resolve).once("error", reject);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  worker.postMessage(options);
  try {
    return await promise;
  } finally {
    worker.off("message", resolve).off("error", reject);
  }
}
