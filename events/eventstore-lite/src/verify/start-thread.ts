import { Worker } from "node:worker_threads";
import type { Fault, Range } from "./range.ts";
import type { CheckOptions, CheckReply, CheckRequest } from "./thread.ts";

export interface CheckThread {
  /** Asked for one thing at a time. */
  check(what: Range | { readonly indexesTo: number }, onChecked: (events: number) => void): Promise<Fault | undefined>;
  end(): Promise<void>;
}

export function startCheckThread(options: CheckOptions): CheckThread {
  const worker = new Worker(new URL("./thread.ts", import.meta.url), { workerData: options });
  let onReply: (reply: CheckReply) => void = () => {};
  const crashed = new Promise<never>((_, reject) => {
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("a thread that verifies the log ended by itself")));
  });
  // Whoever waits for an answer is told; while nobody does, it is no unhandled rejection.
  crashed.catch(() => {});
  worker.on("message", (reply: CheckReply) => onReply(reply));

  /** Sends the request and takes replies until `answer` makes a result of one. */
  function ask<Result>(request: CheckRequest, answer: (reply: CheckReply) => { result: Result } | undefined) {
    const answered = new Promise<Result>((resolve) => {
      onReply = (reply) => {
        const found = answer(reply);
        if (found !== undefined) resolve(found.result);
      };
    });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    worker.postMessage(request);
    return Promise.race([answered, crashed]);
  }

  return {
    check: (what, onChecked) =>
      ask(what, (reply) => {
        if (typeof reply === "object" && "done" in reply) return { result: reply.done };
        if (typeof reply === "object") onChecked(reply.checked);
        return undefined;
      }),
    async end() {
      // In order: nobody promises when the end of a thread would close its connection, which holds locks.
      await ask("close", (reply) => (reply === "closed" ? { result: undefined } : undefined)).catch(() => {});
      await worker.terminate();
    },
  };
}
