import { Worker } from "node:worker_threads";
import { StoreBusy, StoreUnusable } from "../errors.ts";
import type { AwayNotice, Notice, Piece, Reply, Request } from "./writer-messages.ts";

/** The thread's first message: it can write to the log, or cannot. */
export type Started = { readonly storeId: string } | { readonly refused: string; readonly isBusy: boolean };

/** The writer thread, seen from the request thread. */
export interface Thread {
  readonly storeId: string;
  send(message: Request | Piece): void;
  /** Ends the writer thread without closing its database; send `close` first. */
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

/**
 * Starts the writer thread of an engine, with `options` as its `workerData`. Throws {@link StoreUnusable}, whose
 * message begins with the log's name, if it cannot open the log, and {@link StoreBusy} if it cannot do so now.
 */
export async function startThread(
  module: URL,
  log: string,
  options: object,
  listener: ThreadListener,
): Promise<Thread> {
  const worker = new Worker(module, { workerData: options });
  const started = await new Promise<Started>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  if ("refused" in started) {
    await worker.terminate();
    if (started.isBusy) throw new StoreBusy();
    throw new StoreUnusable(`${log}: ${started.refused}`);
  }
  let terminated = false;
  worker.on("message", (message: Reply | Notice | AwayNotice) => {
    if (message.kind === "notice") listener.onNotice(message);
    else if (message.kind === "away") listener.onAway?.(message);
    else listener.onReply(message);
  });
  worker.on("error", (error: Error) => listener.onCrash(error));
  worker.on("exit", (code) => {
    if (!terminated) listener.onCrash(new Error(`the writer thread ended with code ${code}`));
  });
  return {
    storeId: started.storeId,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    send: (message) => worker.postMessage(message),
    async terminate() {
      terminated = true;
      await worker.terminate();
    },
  };
}
