// These tests call the code directly.
import { expect, test } from "bun:test";
import { QUARTER_MS, quarterAt, QUARTERS_MAX, type Quarters } from "../../projections/count-by-quarter-hour.ts";

const START = Date.parse("2026-11-20T10:00:00.000Z");

function countAll(times: readonly number[]): Quarters<{ all: number }> {
  const quarters: Quarters<{ all: number }> = new Map();
  for (const ms of times) quarterAt(quarters, ms, () => ({ all: 0 })).all++;
  return quarters;
}

test("events in one quarter of an hour are counted together, up to its last millisecond", () => {
  const quarters = countAll([START, START + QUARTER_MS - 1, START + QUARTER_MS, START - 1]);
  expect([...quarters]).toEqual([
    [START, { all: 2 }],
    [START + QUARTER_MS, { all: 1 }],
    [START - QUARTER_MS, { all: 1 }],
  ]);
});

test("beyond the limit only the first stored quarter is removed", () => {
  const full = Array.from({ length: QUARTERS_MAX }, (_, number) => START + number * QUARTER_MS);
  expect(countAll(full).size).toBe(QUARTERS_MAX);
  const quarters = countAll([...full, START + QUARTERS_MAX * QUARTER_MS, START + 1 * QUARTER_MS]);
  expect(quarters.size).toBe(QUARTERS_MAX);
  expect(quarters.has(START)).toBe(false);
  expect(quarters.get(START + QUARTER_MS)).toEqual({ all: 2 });
});
