// On no harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { requiredSampleSize, wilsonInterval } from "../../src/platform/rate-statistics.ts";

/** The interval without continuity correction, as in published tables. */
test.each([
  [0, 10, 0, 0.2775328],
  [1, 10, 0.01787621, 0.40415],
  [5, 10, 0.2365931, 0.7634069],
  [10, 10, 0.7224672, 1],
  [30, 100, 0.2189489, 0.3958485],
])("%i of %i", (hits, trials, low, high) => {
  const interval = wilsonInterval(hits, trials);
  expect(interval?.low).toBeCloseTo(low, 5);
  expect(interval?.high).toBeCloseTo(high, 5);
});

test("nothing is said of nothing", () => {
  expect(wilsonInterval(0, 0)).toBeUndefined();
});

test("the rate lies within, and more trials of the same rate narrow it", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), fc.nat(1_000), (trials, some) => {
      const hits = Math.min(some, trials);
      const { low, high } = wilsonInterval(hits, trials) ?? { low: NaN, high: NaN };
      const more = wilsonInterval(hits * 10, trials * 10) ?? { low: NaN, high: NaN };
      expect(low).toBeLessThanOrEqual(hits / trials + 1e-12);
      expect(high).toBeGreaterThanOrEqual(hits / trials - 1e-12);
      expect(more.high - more.low).toBeLessThan(high - low);
    }),
  );
});

test("the sample size that shows a difference is that of two proportions (5 %, 80 % power)", () => {
  // Fleiss, Levin and Paik 2003, formula 4.14 without correction: 10 % against 15 %.
  expect(requiredSampleSize(0.1, 0.15)).toBe(683);
  expect(requiredSampleSize(0.15, 0.1)).toBe(683);
  expect(requiredSampleSize(0.2, 0.2)).toBeUndefined();
});
