import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { spacingMs } from "../../src/outreach/pace.ts";

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
  expect(spacingMs(rate, NOW, fixedMs)).toBe(wanted);
});

test("as many messages as the window has places never take less than the window", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 0, max: 86_400_000 }), (remaining, inMs) => {
      expect(spacingMs(window(remaining, inMs), NOW, undefined) * remaining).toBeGreaterThanOrEqual(inMs);
    }),
  );
});
