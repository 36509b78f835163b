// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { isWhole } from "../harness/case-count.ts";
import { histories } from "./model/run-random-histories.ts";
import { createLogs } from "./model/log-with-copies.ts";
import { createTally } from "./model/count-situations-in-histories.ts";

/**
 * Number of random histories: all with the fault tests, a part of them with the ordinary tests.
 * `test/faults/random-outreach-histories.fault.ts` runs many more.
 */
const HISTORIES = isWhole ? 300 : 20;

test("faults of processes, log, clock and network cause no double, excess, unwanted or unrecorded message", async () => {
  await using logs = createLogs();
  const tally = createTally();
  await fc.assert(histories(logs, tally), { numRuns: HISTORIES });
  console.log(tally.line());
  const { accepted, forgotten, replacedLogs, ...seldom } = tally.counts();
  // Without doubts, crashes, restores and so on, the property would prove little.
  expect(Math.min(accepted, forgotten, replacedLogs)).toBeGreaterThan(0);
  // An ordinary test run plays only some of the histories, which may lack the rare situations that are counted below.
  if (!isWhole) return;
  const { ended, filesPutBack, waits, closed, deduplicationWindow, undelivered } = seldom;
  const { crashes, pauses, stopped, refusedRestores, optedOut, askedAfterOptOut } = seldom;
  const ofProtocol = Math.min(ended, filesPutBack, waits, closed, deduplicationWindow, undelivered);
  expect(Math.min(optedOut, askedAfterOptOut)).toBeGreaterThan(5);
  expect(Math.min(ofProtocol, crashes, pauses, stopped, refusedRestores)).toBeGreaterThan(5);
});
