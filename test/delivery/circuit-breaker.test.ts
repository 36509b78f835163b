// On no harness.
import { expect, test } from "bun:test";
import { afterFailure, circuitOf, CLOSED, type CircuitBreaker } from "../../src/delivery/circuit-breaker.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

/** Each failure as soon as there may be one. */
function fail(times: number): CircuitBreaker {
  let breaker = CLOSED;
  for (let time = 0; time < times; time++) breaker = afterFailure(breaker, Math.max(NOW, breaker.openUntil));
  return breaker;
}

test("four failures in a row leave the circuit closed, the fifth opens it", () => {
  expect([0, 1, 4].map((times) => circuitOf(fail(times), NOW))).toEqual(["closed", "closed", "closed"]);
  expect(circuitOf(fail(5), NOW)).toBe("open");
});

test("those in flight when it opens are no further failures", () => {
  let breaker = fail(5);
  for (let inFlight = 5; inFlight < 16; inFlight++) breaker = afterFailure(breaker, NOW + 5);
  expect(breaker).toEqual(fail(5));
});

test("an open circuit is half open when its time is over, not a millisecond before", () => {
  const open = fail(5);
  expect([999, 1_000, 86_400_000].map((later) => circuitOf(open, NOW + later))).toEqual([
    "open",
    "half_open",
    "half_open",
  ]);
});

test("each failed probe doubles the time for which it is open, up to a minute", () => {
  const waits = [5, 6, 7, 8, 9, 10, 11, 12, 500, 2_000].map(
    (times) => fail(times).openUntil - Math.max(NOW, fail(times - 1).openUntil),
  );
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]);
});

test("after a success the failures are counted from the beginning", () => {
  expect(circuitOf(afterFailure(CLOSED, NOW), NOW)).toBe("closed");
  expect(CLOSED).toEqual({ failures: 0, openUntil: 0 });
});
