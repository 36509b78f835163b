// These tests call the code directly.
import { expect, test } from "bun:test";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";

test("ids are UUIDv7, and sort by creation, also within a millisecond", () => {
  const ids = Array.from({ length: 10_000 }, makeId);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
});
