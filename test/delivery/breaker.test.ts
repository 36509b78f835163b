import { expect, test } from "bun:test";
import { afterFailure, circuitOf, CLOSED, type Breaker } from "../../src/delivery/breaker.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

function fail(times: number, now = NOW): Breaker {
  let breaker = CLOSED;
  for (let time = 0; time < times; time++) breaker = afterFailure(breaker, now);
  return breaker;
}

test("four failures in a row leave the circuit closed, the fifth opens it", () => {
  expect([0, 1, 4].map((times) => circuitOf(fail(times), NOW))).toEqual(["closed", "closed", "closed"]);
  expect(circuitOf(fail(5), NOW)).toBe("open");
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
  const waits = [5, 6, 7, 8, 9, 10, 11, 12, 500, 2_000].map((times) => fail(times).openUntil - NOW);
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]);
});

test("after a success the failures are counted from the beginning", () => {
  expect(circuitOf(afterFailure(CLOSED, NOW), NOW)).toBe("closed");
  expect(CLOSED).toEqual({ failures: 0, openUntil: 0 });
});
