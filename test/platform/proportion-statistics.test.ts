// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { differenceInterval, requiredSampleSize, wilsonInterval } from "../../src/platform/proportion-statistics.ts";

/** Cases from published tables of the Wilson interval without continuity correction. */
test.each([
  [0, 10, 0, 0.2775328],
  [1, 10, 0.01787621, 0.40415],
  [5, 10, 0.2365931, 0.7634069],
  [10, 10, 0.7224672, 1],
  [30, 100, 0.2189489, 0.3958485],
])("the interval of %i of %i is that of the published tables", (hits, trials, low, high) => {
  const interval = wilsonInterval(hits, trials);
  expect(interval?.low).toBeCloseTo(low, 5);
  expect(interval?.high).toBeCloseTo(high, 5);
});

test("zero trials have no interval", () => {
  expect(wilsonInterval(0, 0)).toBeUndefined();
});

test("the interval contains the rate, and more trials narrow it", () => {
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

test("the required sample size equals the published one (5 %, 80 % power)", () => {
  // Fleiss, Levin and Paik 2003, formula 4.14 without correction. The example compares rates of 10 % and 15 %.
  expect(requiredSampleSize(0.1, 0.15)).toBe(683);
  expect(requiredSampleSize(0.15, 0.1)).toBe(683);
  expect(requiredSampleSize(0.2, 0.2)).toBeUndefined();
});

/** Cases from Newcombe 1998, table II, method 10, with four digits. */
test.each([
  [56, 70, 48, 80, 0.0524, 0.3339],
  [9, 10, 3, 10, 0.1705, 0.809],
  [6, 7, 2, 7, 0.0582, 0.8062],
  [5, 56, 0, 29, -0.0381, 0.1926],
  [0, 10, 0, 20, -0.1611, 0.2775],
  [0, 10, 0, 10, -0.2775, 0.2775],
  [10, 10, 0, 20, 0.6791, 1],
  [10, 10, 0, 10, 0.6075, 1],
])(
  "the interval of the difference of %i/%i and %i/%i is the published one",
  (hits, trials, otherHits, others, low, high) => {
    const interval = differenceInterval({ hits, trials }, { hits: otherHits, trials: others });
    expect(interval.low).toBeCloseTo(low, 4);
    expect(interval.high).toBeCloseTo(high, 4);
  },
);

/**
 * Returns a bound of the score interval. It searches for the bound by bisection with the test that defines the
 * interval, so it is independent of the closed formula.
 */
function scoreBound(rate: number, trials: number, end: 0 | 1): number {
  let [inside, outside] = [rate, end as number];
  for (let step = 0; step < 60; step++) {
    const middle = (inside + outside) / 2;
    const isInside = Math.abs(rate - middle) <= 1.959964 * Math.sqrt((middle * (1 - middle)) / trials);
    if (isInside) inside = middle;
    else outside = middle;
  }
  return inside;
}

test("the interval of a difference equals an independent computation by score tests", () => {
  const proportion = fc
    .integer({ min: 1, max: 500 })
    .chain((trials) => fc.record({ trials: fc.constant(trials), hits: fc.nat(trials) }));
  fc.assert(
    fc.property(proportion, proportion, (one, other) => {
      const [p, q] = [one.hits / one.trials, other.hits / other.trials];
      const below = Math.hypot(p - scoreBound(p, one.trials, 0), scoreBound(q, other.trials, 1) - q);
      const above = Math.hypot(scoreBound(p, one.trials, 1) - p, q - scoreBound(q, other.trials, 0));
      const { low, high } = differenceInterval(one, other);
      expect(low).toBeCloseTo(p - q - below, 6);
      expect(high).toBeCloseTo(p - q + above, 6);
    }),
  );
});
