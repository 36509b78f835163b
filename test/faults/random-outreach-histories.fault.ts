import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { histories } from "../outreach/model/run-random-histories.ts";
import { createLogs } from "../outreach/model/log-with-copies.ts";
import { createTally } from "../outreach/model/count-situations-in-histories.ts";
import { isWhole } from "../harness/case-count.ts";

/**
 * Number of random histories. The whole run probably finds a defect that shows in one of a thousand histories; the
 * short run finds one that shows in one of two hundred.
 */
const HISTORIES = isWhole ? 5_000 : 600;

test(`${HISTORIES} histories of the outreach protocol hold all of its rules`, async () => {
  await using logs = createLogs();
  const tally = createTally();
  await fc.assert(histories(logs, tally), { numRuns: HISTORIES });
  console.log(`random commands against the model: ${tally.line()}`);
  // Many crash points occur only rarely: 600 histories once had 55 different ones, and 240 histories had 36.
  expect(tally.counts().crashPoints).toBeGreaterThan(30);
});
