// On the memory harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { isWhole } from "../harness/is-whole.ts";
import { live } from "./model/history.ts";
import { histories } from "./model/steps.ts";

/** All of them with the fault tests; a part with all other tests. */
const HISTORIES = isWhole ? 200 : 50;

/** Minimum counts of situations, since a passing test means little without them. */
const LEAST = { requests: 15 * HISTORIES, kills: HISTORIES / 4, reopenedUntold: HISTORIES / 50, ends: HISTORIES / 10 };

test("histories of any kind: nothing is lost, nothing is sent that may not be, and the account is right", async () => {
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
  expect(requests).toBeGreaterThan(LEAST.requests);
  expect(kills).toBeGreaterThan(LEAST.kills);
  expect(reopenedUntold).toBeGreaterThan(LEAST.reopenedUntold);
  expect(outcomes.size).toBe(4);
  for (const count of outcomes.values()) expect(count).toBeGreaterThan(LEAST.ends);
});
