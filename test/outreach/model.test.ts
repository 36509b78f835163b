// On the memory harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { isWhole } from "../harness/is-whole.ts";
import { histories } from "./model/history.ts";
import { createLogs } from "./model/logs.ts";
import { createTally } from "./model/tally.ts";

/** With the fault tests that many; beside all other tests a part. `test/faults/model.fault.ts` runs many more. */
const HISTORIES = isWhole ? 300 : 60;

test("whatever happens to the processes, the log, the clock and the network: no recipient gets two messages, no day one too many, no person is written to who asked not to be, and the log is what the network took", async () => {
  await using logs = createLogs();
  const tally = createTally();
  await fc.assert(histories(logs, tally), { numRuns: HISTORIES });
  console.log(tally.line());
  const { accepted, forgotten, ended, replacedLogs, filesPutBack, waits, closed, ...rare } = tally.counts();
  // Without doubts, crashes, restores and so on, the property would prove little.
  expect(Math.min(accepted, forgotten, ended, replacedLogs, filesPutBack, waits, closed)).toBeGreaterThan(0);
  const { deduplicationWindow, undelivered, crashes, pauses, stopped, refusedRestores } = rare;
  const met = Math.min(deduplicationWindow, undelivered, crashes, pauses, stopped, refusedRestores);
  // A part of the histories meets some of these seldom.
  if (isWhole) expect(met).toBeGreaterThan(5);
});
