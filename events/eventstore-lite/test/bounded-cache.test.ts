import { expect, test } from "bun:test";
import fc from "fast-check";
import { createBoundedCache } from "../src/bounded-cache.ts";

const ENTRIES_MAX = 8;

test("a bounded cache never gives a value that was not set last, and keeps what was used lately", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat({ max: 20 }), fc.boolean()), { maxLength: 200 }), (steps) => {
      const cache = createBoundedCache<number, number>(ENTRIES_MAX);
      const truth = new Map<number, number>();
      const used: number[] = [];
      for (const [index, [key, isSet]] of steps.entries()) {
        if (isSet) {
          cache.set(key, index);
          truth.set(key, index);
          used.push(key);
        } else {
          const value = cache.get(key);
          if (value !== undefined) expect(value).toBe(truth.get(key)!);
          const lately = new Set(
            used
              .toReversed()
              .filter((other, at, all) => all.indexOf(other) === at)
              .slice(0, ENTRIES_MAX / 2),
          );
          if (lately.has(key)) expect(value).toBe(truth.get(key)!);
          if (value !== undefined) used.push(key);
        }
      }
    }),
  );
});

test("a bounded cache forgets everything when it is cleared", () => {
  const cache = createBoundedCache<string, number>(ENTRIES_MAX);
  cache.set("a", 1);
  cache.clear();
  expect(cache.get("a")).toBeUndefined();
});
