import { expect, test } from "bun:test";
import fc from "fast-check";
import { createBoundedCache } from "../src/bounded-cache.ts";

const ENTRIES_MAX = 8;
const KEYS = 20;

test("a bounded cache keeps recently used keys with their newest values, within its limit", () => {
  const step = fc.tuple(fc.nat({ max: KEYS - 1 }), fc.boolean());
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const cache = createBoundedCache<number, number>(ENTRIES_MAX);
      const truth = new Map<number, number>();
      // Keys in order of their use, the latest at the end.
      const used = new Set<number>();
      for (const [index, [key, isSet]] of steps.entries()) {
        const isRecent = [...used].slice(-ENTRIES_MAX / 2).includes(key);
        if (isSet) truth.set(key, index);
        if (isSet) cache.set(key, index);
        const value = cache.get(key);
        if (value !== undefined || isRecent) expect(value).toBe(truth.get(key));
        used.delete(key);
        if (value !== undefined) used.add(key);
      }
      const held = Array.from({ length: KEYS }, (_, key) => key).filter((key) => cache.get(key) !== undefined);
      expect(held.length).toBeLessThanOrEqual(ENTRIES_MAX);
    }),
  );
});

test("a bounded cache forgets everything when it is cleared", () => {
  const cache = createBoundedCache<string, number>(ENTRIES_MAX);
  cache.set("a", 1);
  cache.clear();
  expect(cache.get("a")).toBeUndefined();
});
