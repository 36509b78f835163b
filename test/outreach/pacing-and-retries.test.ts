// On no harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { spacingMs } from "../../src/outreach/pacing-and-retries.ts";

const NOW = 1_000_000;
const window = (remaining: number, inMs: number) => ({ limit: 15, remaining, resetAt: NOW + inMs });

test.each([
  ["no header seen: one message a minute", undefined, undefined, 60_000],
  ["a fixed spacing where one is set", undefined, 5_000, 5_000],
  ["a fixed spacing beats what is left of the window", window(3, 90_000), 5_000, 5_000],
  ["no spacing at all, where that is set", window(3, 90_000), 0, 0],
  ["what is left of the window is spread", window(3, 90_000), undefined, 30_000],
  ["the last place of a window", window(1, 90_000), undefined, 90_000],
  ["an exhausted window is waited out", window(0, 90_000), undefined, 90_000],
  ["an exhausted window beats a fixed spacing", window(0, 90_000), 5_000, 90_000],
  ["a window that is over already", window(0, -1), undefined, 0],
  ["a window that is over already, with places left", window(7, -60_000), undefined, 0],
])("%s", (_what, rate, fixedMs, wanted) => {
  expect(spacingMs(rate, NOW, fixedMs, rate === undefined ? 0 : 0.5)).toBe(wanted);
});

test("the places of a window last for it, whatever chance says, and are all used", () => {
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

test("chance makes a spacing shorter or longer by a fifth at the most, and never shorter where no header evens it out", () => {
  expect(spacingMs(window(3, 90_000), NOW, undefined, 0)).toBe(24_000);
  expect(spacingMs(window(3, 90_000), NOW, undefined, 1)).toBe(36_000);
  expect(spacingMs(undefined, NOW, undefined, 1)).toBe(72_000);
  expect(spacingMs(window(0, 90_000), NOW, undefined, 0)).toBe(90_000);
  expect(spacingMs(window(3, 90_000), NOW, 5_000, 0)).toBe(5_000);
});
