// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { parseRate, calculateRetryAt } from "../../../src/networks/x/interpret-answer.ts";

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
  expect(parseRate(headers({ [ENDPOINT]: [15, 14, EPOCH_S + 900] }), NOW)).toEqual({
    limit: 15,
    remaining: 14,
    resetAt: NOW + 15 * MINUTE_MS,
  });
});

test("the endpoint's window applies while no window is exhausted", () => {
  const given = {
    [ENDPOINT]: [15, 9, EPOCH_S + 60],
    [USER_DAY]: [1440, 3, EPOCH_S + 7200],
    [APP_DAY]: [1440, 700, EPOCH_S + 60],
  } as const;
  expect(parseRate(headers(given), NOW)).toEqual({ limit: 15, remaining: 9, resetAt: NOW + MINUTE_MS });
});

test("the tighter day window applies without the endpoint's window", () => {
  const given = { [USER_DAY]: [1440, 700, EPOCH_S + 60], [APP_DAY]: [1440, 3, EPOCH_S + 7200] } as const;
  expect(parseRate(headers(given), NOW)).toMatchObject({ remaining: 3, resetAt: NOW + 120 * MINUTE_MS });
});

test.each([USER_DAY, APP_DAY])("an exhausted %s applies, whatever the endpoint has left", (day) => {
  const given = { [ENDPOINT]: [15, 9, EPOCH_S + 60], [day]: [1440, 0, EPOCH_S + 7200] } as const;
  expect(parseRate(headers(given), NOW)).toEqual({ limit: 1440, remaining: 0, resetAt: NOW + 120 * MINUTE_MS });
});

test("the later reset of two exhausted windows applies", () => {
  for (const [sooner, later] of [
    [ENDPOINT, APP_DAY],
    [APP_DAY, ENDPOINT],
    [APP_DAY, USER_DAY],
  ] as const) {
    const given: Parameters<typeof headers>[0] = {
      [sooner]: [15, 0, EPOCH_S + 60],
      [later]: [1440, 0, EPOCH_S + 7200],
    };
    expect(parseRate(headers(given), NOW)).toMatchObject({ limit: 1440, remaining: 0, resetAt: NOW + 120 * MINUTE_MS });
  }
});

test.each([-10 * MINUTE_MS, 10 * MINUTE_MS, 400 * DAY_MS])(
  "a clock skew of %i ms does not change the reset",
  (skew) => {
    const theirs = NOW + skew;
    const rate = parseRate(headers({ [ENDPOINT]: [15, 0, theirs / 1000 + 300] }, theirs), NOW);
    expect(rate?.resetAt).toBe(NOW + 5 * MINUTE_MS);
  },
);

test("an invalid Date header falls back to our clock", () => {
  const given = headers({ [ENDPOINT]: [15, 0, EPOCH_S + 300] });
  given.set("date", "yesterday");
  expect(parseRate(given, NOW)?.resetAt).toBe(NOW + 5 * MINUTE_MS);
});

test.each([
  [-5, NOW + 1000],
  [0, NOW + 1000],
  [EPOCH_S - 3600, NOW + 1000],
  [EPOCH_S, NOW + 1000],
  [999_999_999_999_999, NOW + DAY_MS],
  [NOW, NOW + DAY_MS],
])("a reset of %p is kept within bounds", (reset, resetAt) => {
  expect(parseRate(headers({ [ENDPOINT]: [15, 0, reset] }), NOW)?.resetAt).toBe(resetAt);
});

test.each([
  ["soon", 0, EPOCH_S],
  [15, "", EPOCH_S],
  [15, 0, "NaN"],
  [15, 0, "1e400"],
  [15, 0, "9".repeat(400)],
  [15, 1.5, EPOCH_S],
])("the invalid values %p, %p, %p are no window", (limit, remaining, reset) => {
  expect(parseRate(headers({ [ENDPOINT]: [limit, remaining, reset] }), NOW)).toBeUndefined();
});

test("an invalid window does not affect the others", () => {
  const given = { [ENDPOINT]: ["?", "?", "?"], [USER_DAY]: [1440, 5, EPOCH_S + 60] } as const;
  expect(parseRate(headers(given), NOW)?.remaining).toBe(5);
});

test("missing headers mean no window, and a negative remainder means none left", () => {
  expect(parseRate(new Headers(), NOW)).toBeUndefined();
  expect(parseRate(headers({ [ENDPOINT]: [15, -3, EPOCH_S + 60] }), NOW)?.remaining).toBe(0);
});

describe("a 429 waits", () => {
  const QUARTER_HOUR_MS = 15 * MINUTE_MS;
  const waitOf = (windows: Parameters<typeof headers>[0], retryAfter?: string): number => {
    const given = headers(windows);
    if (retryAfter !== undefined) given.set("retry-after", retryAfter);
    return calculateRetryAt(given, NOW) - NOW;
  };

  test("until the exhausted window resets, else a quarter of an hour", () => {
    expect(waitOf({ [ENDPOINT]: [15, 0, EPOCH_S + 7] })).toBe(7000);
    expect(waitOf({})).toBe(QUARTER_HOUR_MS);
  });

  test("until the endpoint's window resets even with requests left, but not a day window", () => {
    expect(waitOf({ [ENDPOINT]: [15, 4, EPOCH_S + 5] })).toBe(5000);
    expect(waitOf({ [ENDPOINT]: [15, 4, EPOCH_S + 5], [USER_DAY]: [1440, 700, EPOCH_S + 60] })).toBe(5000);
    expect(waitOf({ [USER_DAY]: [1440, 700, EPOCH_S + 7200] })).toBe(QUARTER_HOUR_MS);
  });

  test("for Retry-After without an exhausted window", () => {
    expect(waitOf({}, "90")).toBe(90_000);
    expect(waitOf({ [ENDPOINT]: [15, 4, EPOCH_S + 7] }, "90")).toBe(90_000);
    expect(waitOf({}, "7200")).toBe(120 * MINUTE_MS);
  });

  test("for the longer of Retry-After and the exhausted window", () => {
    expect(waitOf({ [ENDPOINT]: [15, 0, EPOCH_S + 7] }, "90")).toBe(90_000);
    expect(waitOf({ [ENDPOINT]: [15, 0, EPOCH_S + 120] }, "90")).toBe(120_000);
  });

  test.each([
    ["0", 1000],
    ["-5", 1000],
    ["99999999", DAY_MS],
    ["soon", QUARTER_HOUR_MS],
    ["", QUARTER_HOUR_MS],
    ["1e9", QUARTER_HOUR_MS],
  ])("within bounds after a Retry-After of %j", (retryAfter, wait) => {
    expect(waitOf({}, retryAfter)).toBe(wait);
  });
});
