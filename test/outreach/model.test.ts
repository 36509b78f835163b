// On the memory harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { histories } from "./model/history.ts";
import { createLogs } from "./model/logs.ts";
import { createTally } from "./model/tally.ts";

/** `test/faults/model.fault.ts` runs many more. */
const HISTORIES = 300;

test("whatever happens to the processes, the log, the clock and the network: no recipient gets two messages, no day one too many, no person is written to who asked not to be, and the log is what the network took", async () => {
  await using logs = createLogs();
  const tally = createTally();
  await fc.assert(histories(logs, tally), { numRuns: HISTORIES });
  console.log(tally.line());
  const { accepted, deduplicationWindow, undelivered, crashes, pauses, forgotten, stopped, ...counts } = tally.counts();
  const { filesPutBack, refusedRestores, ended } = counts;
  // Without doubts, crashes, restores and so on, the property would prove little.
  const met = [accepted, deduplicationWindow, undelivered, crashes, pauses, forgotten, stopped];
  met.push(counts.replacedLogs, filesPutBack, refusedRestores, ended, counts.waits, counts.closed);
  expect(Math.min(...met)).toBeGreaterThan(5);
});
