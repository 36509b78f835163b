// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import {
  afterFailure,
  afterRateLimit,
  afterStart,
  afterSuccess,
  type CircuitBreaker,
  toCircuit,
  CLOSED,
  INITIAL_PACE,
  nextStartAt,
  type Pace,
  WINDOW_MAX,
} from "../../src/delivery/pace-and-circuit-breaker.ts";
import * as fc from "fast-check";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

function succeed(pace: Pace, times: number): Pace {
  let widened = pace;
  for (let time = 0; time < times; time++) widened = afterSuccess(widened, NOW);
  return widened;
}

describe("the window", () => {
  test("starts at one and widens by one each time it fills with successes", () => {
    expect(INITIAL_PACE.window).toBe(1);
    expect([0, 1, 2, 3, 5, 6].map((successes) => succeed(INITIAL_PACE, successes).window)).toEqual([1, 2, 2, 3, 3, 4]);
  });

  test("has a maximum", () => {
    expect(succeed(INITIAL_PACE, 100_000).window).toBe(WINDOW_MAX);
  });

  test("halves with each 429, down to one", () => {
    let pace = succeed(INITIAL_PACE, 1_000);
    const windows = Array.from({ length: 6 }, () => (pace = afterRateLimit(pace, NOW, 0)).window);
    expect(windows).toEqual([8, 4, 2, 1, 1, 1]);
  });

  test("widens step by step after a 429", () => {
    const throttled = afterRateLimit({ ...INITIAL_PACE, window: 4, streak: 3 }, NOW, 0);
    expect([1, 2].map((successes) => succeed(throttled, successes).window)).toEqual([2, 3]);
  });
});

describe("the pause", () => {
  test("is as long as the network asks, or a second by default", () => {
    expect(afterRateLimit(INITIAL_PACE, NOW, 17_000).pausedUntil).toBe(NOW + 17_000);
    expect(afterRateLimit(INITIAL_PACE, NOW, undefined).pausedUntil).toBe(NOW + 1_000);
  });

  test("is never shortened by a later answer", () => {
    const paused = afterRateLimit(INITIAL_PACE, NOW, 60_000);
    expect(afterRateLimit(paused, NOW + 10, 1_000).pausedUntil).toBe(NOW + 60_000);
    expect(afterSuccess(paused, NOW).pausedUntil).toBe(NOW + 60_000);
  });
});

test("the window stays a whole number within its bounds after any answers", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 300, size: "max" }), (answers) => {
      let pace = INITIAL_PACE;
      for (const success of answers) {
        pace = success ? afterSuccess(pace, NOW) : afterRateLimit(pace, NOW, undefined);
        expect(pace.window).toBeGreaterThanOrEqual(1);
        expect(pace.window).toBeLessThanOrEqual(WINDOW_MAX);
        expect(Number.isInteger(pace.window)).toBe(true);
      }
    }),
  );
});

describe("the spacing", () => {
  test("is zero until the first 429", () => {
    expect(nextStartAt(afterStart(succeed(INITIAL_PACE, 100), NOW))).toBe(0);
  });

  test("starts at a quarter of the pause and grows by half with each later 429", () => {
    let pace = INITIAL_PACE;
    const spacings = [0, 1, 2, 3].map((second) => (pace = afterRateLimit(pace, NOW + second * 1_000, 400)).spacing);
    expect(spacings).toEqual([100, 150, 225, 338]);
    expect(afterRateLimit(INITIAL_PACE, NOW, 8_000).spacing).toBe(2_000);
    expect(afterRateLimit(INITIAL_PACE, NOW, 3_600_000).spacing).toBe(10_000);
  });

  test("grows once for requests in flight together", () => {
    const once = afterRateLimit(INITIAL_PACE, NOW, 1_000);
    expect(afterRateLimit(once, NOW + 10, 1_000).spacing).toBe(once.spacing);
  });

  test("shrinks by a tenth each quiet minute, in the end to zero", () => {
    const spaced = afterRateLimit(INITIAL_PACE, NOW, 4_000);
    expect(afterSuccess(spaced, NOW + 59_999).spacing).toBe(1_000);
    expect(afterSuccess(spaced, NOW + 60_000).spacing).toBe(900);
    let pace = spaced;
    for (let minute = 1; minute <= 60; minute++) pace = afterSuccess(pace, NOW + minute * 60_000);
    expect(pace.spacing).toBe(0);
  });
});

/**
 * Simulates `hours` of requests without a break to a network that accepts a burst of messages, and then `perSecond`
 * messages a second.
 */
function askedAllDay(perSecond: number, burst: number, hours: number) {
  let [now, tokens, filledAt, pace, taken] = [NOW, burst, NOW, INITIAL_PACE, 0];
  const refusals: number[] = [];
  while (now < NOW + hours * 3_600_000) {
    now = Math.max(now + 40, nextStartAt(pace));
    pace = afterStart(pace, now);
    tokens = Math.min(burst, tokens + ((now - filledAt) / 1_000) * perSecond);
    filledAt = now;
    if (tokens >= 1) {
      tokens -= 1;
      taken += 1;
      pace = afterSuccess(pace, now);
    } else {
      refusals.push(now - NOW);
      pace = afterRateLimit(pace, now, Math.ceil((1 - tokens) / perSecond) * 1_000);
    }
  }
  return { taken, refusals };
}

test.each([
  [1, 1],
  [1, 5],
  [1 / 3, 20],
  [30, 30],
])("a network that accepts %p messages a second is used near its limit with few 429s", (perSecond, burst) => {
  const hours = 2;
  const { taken, refusals } = askedAllDay(perSecond, burst, hours);
  const allowed = Math.min(perSecond, 25) * hours * 3_600;
  expect(taken).toBeGreaterThan(0.6 * allowed);
  const later = refusals.filter((at) => at > 120_000).map((at) => Math.floor(at / 60_000));
  expect(new Set(later).size).toBe(later.length);
});

/** Returns a circuit breaker after `times` failures, each as soon as it allowed a request. */
function fail(times: number): CircuitBreaker {
  let breaker = CLOSED;
  for (let time = 0; time < times; time++) breaker = afterFailure(breaker, Math.max(NOW, breaker.openUntil));
  return breaker;
}

test("four failures in a row leave the circuit closed, the fifth opens it", () => {
  expect([0, 1, 4].map((times) => toCircuit(fail(times), NOW))).toEqual(["closed", "closed", "closed"]);
  expect(toCircuit(fail(5), NOW)).toBe("open");
});

test("failures in flight when the circuit opens do not count", () => {
  let breaker = fail(5);
  for (let inFlight = 5; inFlight < 16; inFlight++) breaker = afterFailure(breaker, NOW + 5);
  expect(breaker).toEqual(fail(5));
});

test("an open circuit becomes half open exactly when its time is over", () => {
  const open = fail(5);
  expect([999, 1_000, 86_400_000].map((later) => toCircuit(open, NOW + later))).toEqual([
    "open",
    "half_open",
    "half_open",
  ]);
});

test("each failed probe doubles the circuit's open time, up to a minute", () => {
  const waits = [5, 6, 7, 8, 9, 10, 11, 12, 500, 2_000].map(
    (times) => fail(times).openUntil - Math.max(NOW, fail(times - 1).openUntil),
  );
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]);
});

test("a closed circuit counts failures from zero", () => {
  expect(toCircuit(afterFailure(CLOSED, NOW), NOW)).toBe("closed");
  expect(CLOSED).toEqual({ failures: 0, openUntil: 0 });
});
