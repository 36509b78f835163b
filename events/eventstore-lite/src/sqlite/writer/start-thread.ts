import { Worker } from "node:worker_threads";
import type { Notice, Reply, Request } from "../../append/messages.ts";
import { StoreBusy, StoreUnusable } from "../../errors.ts";

/** How the thread is started. */
export interface ThreadOptions {
  readonly file: string;
  readonly databaseBytesMax: number;
  readonly eventBytesMax: number;
  /** Address of the module that finishes events. */
  readonly finish: string | undefined;
}

/** The thread's first message: its connection is open, or could not be opened. */
export type Started = { readonly storeId: string } | { readonly refused: string; readonly isBusy: boolean };

/** The writer thread as the request thread sees it: one reply for each request, in order. */
export interface Thread {
  readonly storeId: string;
  send(request: Request): void;
  /** Closes nothing by itself: send `close` first. */
  terminate(): Promise<void>;
}

export interface ThreadListener {
  onReply(reply: Reply): void;
  /** Another process appended. */
  onNotice(notice: Notice): void;
  /** The thread died; its last requests stay without reply. */
  onCrash(error: Error): void;
}

/** Starts the writer thread. Throws {@link StoreUnusable} when it cannot open the log, {@link StoreBusy} when it cannot now. */
export async function startThread(options: ThreadOptions, listener: ThreadListener): Promise<Thread> {
  const worker = new Worker(new URL("./writer-thread.ts", import.meta.url), { workerData: options });
  const started = await new Promise<Started>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  if ("refused" in started) {
    await worker.terminate();
    if (started.isBusy) throw new StoreBusy();
    throw new StoreUnusable(`${options.file}: ${started.refused}`);
  }
  let terminated = false;
  worker.on("message", (message: Reply | Notice) => {
    if (message.kind === "notice") listener.onNotice(message);
    else listener.onReply(message);
  });
  worker.on("error", (error: Error) => listener.onCrash(error));
  worker.on("exit", (code) => {
    if (!terminated) listener.onCrash(new Error(`the writer thread ended with code ${code}`));
  });
  return {
    storeId: started.storeId,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    send: (request) => worker.postMessage(request),
    async terminate() {
      terminated = true;
      await worker.terminate();
    },
  };
}
