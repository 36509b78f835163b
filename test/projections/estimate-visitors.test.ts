// These tests call the code directly.
import { expect, test } from "bun:test";
import {
  addVisitor,
  estimateVisitors,
  VISITOR_RANKS,
  VISITOR_REGISTERS,
  VISITORS_ERROR,
} from "../../projections/estimate-visitors.ts";
import { createRandom } from "../harness/random.ts";

/**
 * Returns a random visitor as `addVisitor` takes it: the number of a HyperLogLog register and a rank, combined in one
 * number. Register and rank are distributed like those of a hash.
 */
function place(random: () => number): number {
  const rank = 1 + Math.min(Math.floor(-Math.log2(random())), VISITOR_RANKS - 2);
  return Math.floor(random() * VISITOR_REGISTERS) * VISITOR_RANKS + rank;
}

test("the standard error of an estimate is at most about VISITORS_ERROR for few and many visitors", () => {
  const random = createRandom(20_261_126);
  const sketches = 200;
  for (const visitors of [1, 10, 100, 1_000, 3_000, 5_000, 6_000, 10_000]) {
    let squares = 0;
    let sum = 0;
    for (let sketch = 0; sketch < sketches; sketch++) {
      let state: string | undefined;
      for (let visitor = 0; visitor < visitors; visitor++) state = addVisitor(state, place(random));
      const error = estimateVisitors(state ?? "") / visitors - 1;
      squares += error ** 2;
      sum += error;
    }
    // With 200 sketches, the estimate of the standard error has itself an error of 5 %.
    expect(Math.sqrt(squares / sketches)).toBeLessThan(1.15 * VISITORS_ERROR);
    expect(Math.abs(sum / sketches)).toBeLessThan((3 * VISITORS_ERROR) / Math.sqrt(sketches));
  }
  expect(VISITORS_ERROR).toBeCloseTo(0.02298, 5);
});

test("a repeated visitor counts once, and an invalid one is ignored", () => {
  const one = addVisitor(undefined, 7 * VISITOR_RANKS + 3);
  expect(estimateVisitors(one)).toBe(1);
  expect(addVisitor(one, 7 * VISITOR_RANKS + 3)).toBe(one);
  expect(addVisitor(one, 7 * VISITOR_RANKS + 2)).toBe(one);
  expect(addVisitor(one, 7 * VISITOR_RANKS + 4)).not.toBe(one);
  expect(estimateVisitors(addVisitor(one, 8 * VISITOR_RANKS + 1))).toBe(2);
  for (const none of [-1, VISITOR_REGISTERS * VISITOR_RANKS + 1, Number.NaN, 7 * VISITOR_RANKS])
    expect(addVisitor(one, none)).toBe(one);
  expect(JSON.parse(JSON.stringify(one))).toBe(one);
});

test("a new sketch estimates no visitors", () => {
  expect(estimateVisitors(addVisitor(undefined, -1))).toBe(0);
});
