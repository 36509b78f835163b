// Checks ranges of a log one after the other; started by start-thread.ts.
import { parentPort, workerData } from "node:worker_threads";
import { openReader } from "../connections.ts";
import { createCheckRange } from "./check-range.ts";
import { findUnindexed, type IndexWalk, walkIndexes } from "./indexes.ts";
import type { Checked, Fault, Range } from "./check-result-types.ts";
import type { Sums } from "./index-sums.ts";

export interface CheckOptions {
  readonly file: string;
  /** Number in memory that both threads share; once it is not 0, the check of a range stops. */
  readonly stop: Int32Array;
}

/** Tasks of a verifying thread, each with one answer; reports of progress may come before the answer to `check`. */
export interface CheckTasks {
  readonly check: { readonly ask: Range; readonly answer: Checked | undefined };
  readonly walk: { readonly ask: { readonly last: number }; readonly answer: IndexWalk };
  readonly compare: {
    readonly ask: { readonly walk: IndexWalk; readonly sums: Sums; readonly last: number };
    readonly answer: Fault | undefined;
  };
  readonly close: { readonly ask: undefined; readonly answer: undefined };
}

export type CheckRequest = {
  [Task in keyof CheckTasks]: { readonly task: Task; readonly ask: CheckTasks[Task]["ask"] };
}[keyof CheckTasks];

export type CheckReply = { readonly checked: number } | { readonly answer: CheckTasks[keyof CheckTasks]["answer"] };

/** Number of checked events between two reports of progress: some milliseconds of work. */
const REPORT_EVENTS = 4_096;

if (!parentPort) throw new Error("verify-thread.ts runs as a worker only");
const port = parentPort;
const { file, stop } = workerData as CheckOptions;
const db = openReader(file);
const checkRange = createCheckRange(db);

/** Checks a range of the log, and reports its progress. Undefined if `stop` was set before the end. */
function check(range: Range): Checked | undefined {
  const chunks = checkRange(range);
  let unreported = 0;
  for (;;) {
    const { done, value } = chunks.next();
    if (done !== true) unreported += value;
    if (unreported >= REPORT_EVENTS || (done === true && unreported > 0)) {
      port.postMessage({ checked: unreported } satisfies CheckReply);
      unreported = 0;
    }
    if (done === true) return value;
    if (Atomics.load(stop, 0) !== 0) return undefined;
  }
}

function perform(request: CheckRequest): CheckTasks[keyof CheckTasks]["answer"] {
  switch (request.task) {
    case "check":
      return check(request.ask);
    case "walk":
      return walkIndexes(db, request.ask.last);
    case "compare": {
      const { walk, sums, last } = request.ask;
      return findUnindexed(db, walk, sums, last);
    }
    default:
      db.close();
      return undefined;
  }
}

port.on("message", (request: CheckRequest) => {
  const answer = perform(request);
  port.postMessage({ answer } satisfies CheckReply);
  // After the reply to `close`, nothing keeps the thread alive, on any runtime.
  if (request.task === "close") port.unref();
});
