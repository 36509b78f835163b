// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { positionsOf, sourcesOf } from "../../events/position-ranges.ts";

test("consecutive positions become one range, in any given order", () => {
  expect(sourcesOf([9, 3, 5, 4, 7, 12, 13])).toEqual([[3, 5], 7, 9, [12, 13]]);
});

test("ranges give back the positions they were made from", () => {
  const positions = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { minLength: 1 });
  fc.assert(
    fc.property(positions, (given) => {
      expect([...positionsOf(sourcesOf(given))]).toEqual(given.toSorted((a, b) => a - b));
    }),
  );
});
