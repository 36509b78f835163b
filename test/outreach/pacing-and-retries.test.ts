// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { spacingMs } from "../../src/outreach/pacing-and-retries.ts";

const NOW = 1_000_000;
const window = (remaining: number, inMs: number) => ({ limit: 15, remaining, resetAt: NOW + inMs });

test.each([
  ["a minute without rate headers", undefined, undefined, 60_000],
  ["the configured one without rate headers", undefined, 5_000, 5_000],
  ["the configured one rather than a share of the window", window(3, 90_000), 5_000, 5_000],
  ["zero if configured", window(3, 90_000), 0, 0],
  ["an equal share of the remaining window", window(3, 90_000), undefined, 30_000],
  ["the whole remaining window for its last message", window(1, 90_000), undefined, 90_000],
  ["the rest of an exhausted window", window(0, 90_000), undefined, 90_000],
  ["the rest of an exhausted window rather than the configured one", window(0, 90_000), 5_000, 90_000],
  ["zero after an exhausted window in the past", window(0, -1), undefined, 0],
  ["zero after a window in the past with messages left", window(7, -60_000), undefined, 0],
])("the spacing is %s", (_what, rate, fixedMs, wanted) => {
  expect(spacingMs(rate, NOW, fixedMs, rate === undefined ? 0 : 0.5)).toBe(wanted);
});

test("the messages of a window are spread over it and all used, with any jitter", () => {
  const chance = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100 }),
      fc.integer({ min: 1_000, max: 86_400_000 }),
      fc.array(chance, { minLength: 100, maxLength: 100 }),
      (places, inMs, chances) => {
        const resetAt = NOW + inMs;
        let now = NOW;
        for (let remaining = places; remaining > 0; remaining--) {
          expect(now).toBeLessThanOrEqual(resetAt + places);
          now += spacingMs({ limit: places, remaining, resetAt }, now, undefined, chances[remaining] ?? 0);
        }
        now += spacingMs({ limit: places, remaining: 0, resetAt }, now, undefined, 0);
        expect(now).toBeGreaterThanOrEqual(resetAt);
      },
    ),
  );
});

test("jitter changes a spacing by at most a fifth, and never shortens one without headers", () => {
  expect(spacingMs(window(3, 90_000), NOW, undefined, 0)).toBe(24_000);
  expect(spacingMs(window(3, 90_000), NOW, undefined, 1)).toBe(36_000);
  expect(spacingMs(undefined, NOW, undefined, 1)).toBe(72_000);
  expect(spacingMs(window(0, 90_000), NOW, undefined, 0)).toBe(90_000);
  expect(spacingMs(window(3, 90_000), NOW, 5_000, 0)).toBe(5_000);
});
