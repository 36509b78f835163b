import { Worker } from "node:worker_threads";
import type { Range } from "./check-result-types.ts";
import type { CheckOptions, CheckReply, CheckTasks } from "./verify-thread.ts";

type Task = keyof CheckTasks;

/** A worker thread that verifies the events and indexes of a SQLite log, one task at a time. */
export interface CheckThread {
  /** Checks a range of the log; undefined if the check was stopped before the end of the range. */
  check(range: Range, onChecked: (events: number) => void): Promise<CheckTasks["check"]["answer"]>;
  walk(ask: CheckTasks["walk"]["ask"]): Promise<CheckTasks["walk"]["answer"]>;
  compare(ask: CheckTasks["compare"]["ask"]): Promise<CheckTasks["compare"]["answer"]>;
  end(): Promise<void>;
}

export function startCheckThread(options: CheckOptions): CheckThread {
  const worker = new Worker(new URL("./verify-thread.ts", import.meta.url), { workerData: options });
  let onReply: (reply: CheckReply) => void = () => {};
  const crashed = new Promise<never>((_, reject) => {
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("a thread that verifies the log ended by itself")));
  });
  // A caller that waits for an answer gets the thread's error. If no caller waits, the error must not become an
  // unhandled rejection.
  crashed.catch(() => {});
  worker.on("message", (reply: CheckReply) => onReply(reply));

  /** Sends a request to the thread, passes the thread's progress reports to `onChecked`, and returns the answer. */
  function perform<Name extends Task>(
    task: Name,
    ask: CheckTasks[Name]["ask"],
    onChecked: (events: number) => void = () => {},
  ): Promise<CheckTasks[Name]["answer"]> {
    const answered = new Promise<CheckTasks[Name]["answer"]>((resolve) => {
      onReply = (reply) => {
        if ("checked" in reply) onChecked(reply.checked);
        else resolve(reply.answer);
      };
    });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    worker.postMessage({ task, ask });
    return Promise.race([answered, crashed]);
  }

  return {
    check: (range, onChecked) => perform("check", range, onChecked),
    walk: (ask) => perform("walk", ask),
    compare: (ask) => perform("compare", ask),
    async end() {
      // The thread closes its connection before it ends, because the connection holds locks, which the end of the
      // thread might release only later.
      await perform("close", undefined).catch(() => {});
      await worker.terminate();
    },
  };
}
