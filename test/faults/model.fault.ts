import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { histories } from "../outreach/model/history.ts";
import { createLogs } from "../outreach/model/logs.ts";
import { createTally } from "../outreach/model/tally.ts";
import { isWhole } from "../harness/is-whole.ts";

/** As many as find what one history in a thousand shows, or one in two hundred. */
const HISTORIES = isWhole ? 5_000 : 600;

test(`${HISTORIES} histories of the outreach protocol hold all of its rules`, async () => {
  await using logs = createLogs();
  const tally = createTally();
  await fc.assert(histories(logs, tally), { numRuns: HISTORIES });
  console.log(`random commands against the model: ${tally.line()}`);
  // 600 histories met 55 of them once, 240 met 36: most points are rare.
  expect(tally.counts().crashPoints).toBeGreaterThan(30);
}, 1_200_000);
