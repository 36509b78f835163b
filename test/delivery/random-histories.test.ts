// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { isWhole } from "../harness/case-count.ts";
import { live } from "./model/play-history.ts";
import { histories } from "./model/generate-delivery-histories.ts";

/** Number of random histories: all of them with the fault tests, a part with all other tests. */
const HISTORIES = isWhole ? 200 : 50;

/**
 * Minimum number of times that each situation must occur in the histories; otherwise a passing test means little. If
 * only some histories are played, rare situations may be missing by chance, so the numbers are lower.
 */
const LEAST = isWhole
  ? { requests: 3_000, kills: 50, reopenedUntold: 4, ends: 20 }
  : { requests: 200, kills: 1, reopenedUntold: 0, ends: 1 };

const ENDS = ["DispatchSucceeded", "DispatchAbandoned", "DispatchInDoubt", "DispatchSkipped"];

test("random histories lose no dispatch, send none that is forbidden and count correctly", async () => {
  let [requests, kills, reopenedUntold] = [0, 0, 0];
  const outcomes = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      const lived = await live(history);
      requests += lived.requests;
      kills += lived.kills;
      reopenedUntold += lived.reopenedUntold;
      for (const [type, count] of lived.outcomes) outcomes.set(type, (outcomes.get(type) ?? 0) + count);
    }),
    { numRuns: HISTORIES },
  );
  expect(requests).toBeGreaterThanOrEqual(LEAST.requests);
  expect(kills).toBeGreaterThanOrEqual(LEAST.kills);
  expect(reopenedUntold).toBeGreaterThanOrEqual(LEAST.reopenedUntold);
  for (const type of ENDS) expect(outcomes.get(type) ?? 0).toBeGreaterThanOrEqual(LEAST.ends);
});
