// On no harness.
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

test("while all windows have something left the one of the endpoint decides, however tight a day is", () => {
  const given = {
    [ENDPOINT]: [15, 9, EPOCH_S + 60],
    [USER_DAY]: [1440, 3, EPOCH_S + 7200],
    [APP_DAY]: [1440, 700, EPOCH_S + 60],
  } as const;
  expect(parseRate(headers(given), NOW)).toEqual({ limit: 15, remaining: 9, resetAt: NOW + MINUTE_MS });
});

test("without the endpoint's window the tighter day decides", () => {
  const given = { [USER_DAY]: [1440, 700, EPOCH_S + 60], [APP_DAY]: [1440, 3, EPOCH_S + 7200] } as const;
  expect(parseRate(headers(given), NOW)).toMatchObject({ remaining: 3, resetAt: NOW + 120 * MINUTE_MS });
});

test.each([USER_DAY, APP_DAY])("an exhausted %s decides, whatever the endpoint has left", (day) => {
  const given = { [ENDPOINT]: [15, 9, EPOCH_S + 60], [day]: [1440, 0, EPOCH_S + 7200] } as const;
  expect(parseRate(headers(given), NOW)).toEqual({ limit: 1440, remaining: 0, resetAt: NOW + 120 * MINUTE_MS });
});

test("of two exhausted windows the later reset decides", () => {
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

test.each([-10 * MINUTE_MS, 10 * MINUTE_MS, 400 * DAY_MS])("a clock that differs by %i ms does not matter", (skew) => {
  const theirs = NOW + skew;
  const rate = parseRate(headers({ [ENDPOINT]: [15, 0, theirs / 1000 + 300] }, theirs), NOW);
  expect(rate?.resetAt).toBe(NOW + 5 * MINUTE_MS);
});

test("a broken Date header means our clock", () => {
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
])("garbage (%p, %p, %p) is no window", (limit, remaining, reset) => {
  expect(parseRate(headers({ [ENDPOINT]: [limit, remaining, reset] }), NOW)).toBeUndefined();
});

test("garbage in one window leaves the others", () => {
  const given = { [ENDPOINT]: ["?", "?", "?"], [USER_DAY]: [1440, 5, EPOCH_S + 60] } as const;
  expect(parseRate(headers(given), NOW)?.remaining).toBe(5);
});

test("no headers, no window; fewer than none left is none", () => {
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

  test("for the exhausted window, else a quarter of an hour", () => {
    expect(waitOf({ [ENDPOINT]: [15, 0, EPOCH_S + 7] })).toBe(7000);
    expect(waitOf({})).toBe(QUARTER_HOUR_MS);
  });

  test("for the window's reset, though X says that something is left, but not for a day", () => {
    expect(waitOf({ [ENDPOINT]: [15, 4, EPOCH_S + 5] })).toBe(5000);
    expect(waitOf({ [ENDPOINT]: [15, 4, EPOCH_S + 5], [USER_DAY]: [1440, 700, EPOCH_S + 60] })).toBe(5000);
    expect(waitOf({ [USER_DAY]: [1440, 700, EPOCH_S + 7200] })).toBe(QUARTER_HOUR_MS);
  });

  test("for Retry-After where no exhausted window is given", () => {
    expect(waitOf({}, "90")).toBe(90_000);
    expect(waitOf({ [ENDPOINT]: [15, 4, EPOCH_S + 7] }, "90")).toBe(90_000);
    expect(waitOf({}, "7200")).toBe(120 * MINUTE_MS);
  });

  test("for both where both are given", () => {
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
