// On no harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { ATTEMPTS_MAX, retryDelayMs } from "../../src/delivery/retry.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const retryAfter = fc.option(fc.oneof(fc.nat(), fc.double({ noNaN: true }), fc.constant(Infinity)), { nil: undefined });

test("a wait is never negative, and bounded, whatever the attempt and the network's wish", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), random, retryAfter, (attempt, chance, wish) => {
      const wait = retryDelayMs(attempt, chance, wish);
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThanOrEqual(Math.max(40 * MINUTE_MS, Math.min(wish ?? 0, DAY_MS)));
      if (wish !== undefined && wish <= DAY_MS) expect(wait).toBeGreaterThanOrEqual(wish);
    }),
    { numRuns: 1000 },
  );
});

test("a network may make us wait for a day, not for ever", () => {
  expect(retryDelayMs(1, 0, 90 * DAY_MS)).toBe(DAY_MS);
});

test("the jitter is full: anything from at once to the ceiling, which grows from attempt to attempt", () => {
  const ceilings = Array.from({ length: ATTEMPTS_MAX - 1 }, (_, index) => retryDelayMs(index + 1, 1, undefined));
  expect(ceilings[0]).toBe(2_000);
  expect(ceilings).toEqual(ceilings.toSorted((a, b) => a - b));
  expect(new Set(ceilings).size).toBe(ceilings.length);
  for (const [index, ceiling] of ceilings.entries()) {
    expect(retryDelayMs(index + 1, 0, undefined)).toBe(0);
    expect(Math.abs(retryDelayMs(index + 1, 0.5, undefined) - ceiling / 2)).toBeLessThanOrEqual(1);
  }
});

test("eight attempts are over in about an hour at the longest", () => {
  expect(ATTEMPTS_MAX).toBe(8);
  let total = 0;
  for (let attempt = 1; attempt < ATTEMPTS_MAX; attempt++) total += retryDelayMs(attempt, 0.999_999, undefined);
  expect(total).toBeGreaterThan(45 * MINUTE_MS);
  expect(total).toBeLessThan(70 * MINUTE_MS);
});
