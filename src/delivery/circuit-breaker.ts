import type { ChannelState } from "../../projections/deliveries.ts";

/**
 * Circuit breaker of one channel: after several transient failures in a row nothing is sent for a while, then a single
 * probe decides. Pure: times are ms since the epoch.
 */
export interface CircuitBreaker {
  /** Transient failures since the last success. */
  readonly failures: number;
  /** Until when the circuit is open; 0 while it is closed. */
  readonly openUntil: number;
}

export type Circuit = "closed" | "open" | "half_open";

/** Failures in a row that open the circuit. */
const TRIP_AFTER = 5;

/** First and longest time for which nothing is sent. */
const OPEN_MIN_MS = 1_000;
const OPEN_MAX_MS = 60_000;

export const CLOSED: CircuitBreaker = { failures: 0, openUntil: 0 };

/** As the log has it. No longer open than any is, where the clock was set back since. */
export function breakerIn({ circuit }: Pick<ChannelState, "circuit">, now: number): CircuitBreaker {
  if (circuit === null) return CLOSED;
  return { failures: circuit.failures, openUntil: Math.min(Date.parse(circuit.until), now + OPEN_MAX_MS) };
}

export function afterFailure(breaker: CircuitBreaker, now: number): CircuitBreaker {
  // Those in flight together when it opens fail together: one lesson.
  if (circuitOf(breaker, now) === "open") return breaker;
  const next = breaker.failures + 1;
  if (next < TRIP_AFTER) return { failures: next, openUntil: 0 };
  const openMs = Math.min(OPEN_MAX_MS, OPEN_MIN_MS * 2 ** (next - TRIP_AFTER));
  return { failures: next, openUntil: now + openMs };
}

export function circuitOf({ openUntil }: CircuitBreaker, now: number): Circuit {
  if (openUntil === 0) return "closed";
  return now < openUntil ? "open" : "half_open";
}
