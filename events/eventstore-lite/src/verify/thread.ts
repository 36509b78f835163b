// Checks ranges of a log, one after the other; started by start-thread.ts.
import { parentPort, workerData } from "node:worker_threads";
import { openReader } from "../sqlite/connections.ts";
import { createCheckRange } from "./check.ts";
import { findUnindexed } from "./indexes.ts";
import type { Fault, Range } from "./range.ts";

export interface CheckOptions {
  readonly file: string;
  /** One number, shared: from the moment that it is not 0, no range is checked any further. */
  readonly stop: Int32Array;
}

/** A range to check, the indexes up to a position, or the end. */
export type CheckRequest = Range | { readonly indexesTo: number } | "close";

/** Any number of the first kind come before the one answer of the others. */
export type CheckReply = { readonly checked: number } | { readonly done: Fault | undefined } | "closed";

/** Events between two reports: some milliseconds. */
const REPORT_EVENTS = 4_096;

if (!parentPort) throw new Error("verify/thread.ts runs as a worker only");
const port = parentPort;
const { file, stop } = workerData as CheckOptions;
const db = openReader(file);
const checkRange = createCheckRange(db);

function check(range: Range): Fault | undefined {
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

port.on("message", (request: CheckRequest) => {
  if (request !== "close") {
    const done = "indexesTo" in request ? findUnindexed(db, request.indexesTo) : check(request);
    port.postMessage({ done } satisfies CheckReply);
    return;
  }
  db.close();
  port.postMessage("closed" satisfies CheckReply);
  port.close();
});
