import { expect, test } from "bun:test";
import { rateOf, retryAtOf } from "../../src/networks/x-rate.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const EPOCH_S = NOW / 1000;

function headers(windows: Record<string, readonly [unknown, unknown, unknown]>, dateMs?: number): Headers {
  const all = new Headers(dateMs === undefined ? {} : { date: new Date(dateMs).toUTCString() });
  for (const [prefix, [limit, remaining, reset]] of Object.entries(windows)) {
    all.set(`${prefix}-limit`, String(limit));
    all.set(`${prefix}-remaining`, String(remaining));
    all.set(`${prefix}-reset`, String(reset));
  }
  return all;
}

const ENDPOINT = "x-rate-limit";
const USER_DAY = "x-user-limit-24hour";
const APP_DAY = "x-app-limit-24hour";

test("a window is read with its reset in ms", () => {
  expect(rateOf(headers({ [ENDPOINT]: [15, 14, EPOCH_S + 900] }), NOW)).toEqual({
    limit: 15,
    remaining: 14,
    resetAt: NOW + 15 * MINUTE_MS,
  });
});

test("of several windows the one with the least left decides", () => {
  const told = {
    [ENDPOINT]: [15, 9, EPOCH_S + 60],
    [USER_DAY]: [1440, 3, EPOCH_S + 7200],
    [APP_DAY]: [1440, 700, EPOCH_S + 60],
  } as const;
  expect(rateOf(headers(told), NOW)).toMatchObject({ remaining: 3, resetAt: NOW + 120 * MINUTE_MS });
});

test("of two exhausted windows the later reset decides", () => {
  const told = { [ENDPOINT]: [15, 0, EPOCH_S + 60], [APP_DAY]: [1440, 0, EPOCH_S + 7200] } as const;
  expect(rateOf(headers(told), NOW)).toMatchObject({ remaining: 0, resetAt: NOW + 120 * MINUTE_MS });
});

test.each([-10 * MINUTE_MS, 10 * MINUTE_MS, 400 * DAY_MS])("a clock that differs by %i ms does not matter", (skew) => {
  const theirs = NOW + skew;
  const rate = rateOf(headers({ [ENDPOINT]: [15, 0, theirs / 1000 + 300] }, theirs), NOW);
  expect(rate?.resetAt).toBe(NOW + 5 * MINUTE_MS);
});

test("a broken Date header means our clock", () => {
  const told = headers({ [ENDPOINT]: [15, 0, EPOCH_S + 300] });
  told.set("date", "yesterday");
  expect(rateOf(told, NOW)?.resetAt).toBe(NOW + 5 * MINUTE_MS);
});

test.each([
  [-5, NOW + 1000],
  [0, NOW + 1000],
  [EPOCH_S - 3600, NOW + 1000],
  [EPOCH_S, NOW + 1000],
  [999_999_999_999_999, NOW + DAY_MS],
  [NOW, NOW + DAY_MS],
])("a reset of %p is kept within bounds", (reset, resetAt) => {
  expect(rateOf(headers({ [ENDPOINT]: [15, 0, reset] }), NOW)?.resetAt).toBe(resetAt);
});

test.each([
  ["soon", 0, EPOCH_S],
  [15, "", EPOCH_S],
  [15, 0, "NaN"],
  [15, 0, "1e400"],
  [15, 0, "9".repeat(400)],
  [15, 1.5, EPOCH_S],
])("garbage (%p, %p, %p) is no window", (limit, remaining, reset) => {
  expect(rateOf(headers({ [ENDPOINT]: [limit, remaining, reset] }), NOW)).toBeUndefined();
});

test("garbage in one window leaves the others", () => {
  const told = { [ENDPOINT]: ["?", "?", "?"], [USER_DAY]: [1440, 5, EPOCH_S + 60] } as const;
  expect(rateOf(headers(told), NOW)?.remaining).toBe(5);
});

test("no headers, no window; fewer than none left is none", () => {
  expect(rateOf(new Headers(), NOW)).toBeUndefined();
  expect(rateOf(headers({ [ENDPOINT]: [15, -3, EPOCH_S + 60] }), NOW)?.remaining).toBe(0);
});

test("a 429 waits for the exhausted window, else a quarter of an hour", () => {
  expect(retryAtOf({ limit: 15, remaining: 0, resetAt: NOW + 7000 }, NOW)).toBe(NOW + 7000);
  expect(retryAtOf({ limit: 15, remaining: 4, resetAt: NOW + 7000 }, NOW)).toBe(NOW + 15 * MINUTE_MS);
  expect(retryAtOf(undefined, NOW)).toBe(NOW + 15 * MINUTE_MS);
});
