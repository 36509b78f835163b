import type { DispatchResult } from "../networks/network.ts";
import { afterFailure, circuitOf, CLOSED, type CircuitBreaker } from "./circuit-breaker.ts";
import { afterStart, afterSuccess, afterRateLimit, INITIAL_PACE, nextStartAt, shifted, type Pace } from "./pacing.ts";

/** HTTP status of a network that asks for less. */
const TOO_MANY_REQUESTS = 429;

/** How much of a channel may be used, as its answers teach: its pace and its circuit breaker. Times are ms since the epoch. */
export interface RateLimiter {
  /** The time is `now`: when the clock was set back, what waits does not wait for longer. */
  notice(now: number): void;
  learn(result: DispatchResult, now: number): void;
  /** The network took it, and asks for some rest. */
  pause(until: number): void;
  /** A dispatch starts. */
  started(now: number): void;
  /** How many may be in flight now; none while the channel is paused or its circuit is open. */
  allowance(now: number): number;
  /** When something may start again; in the past while something may. */
  blockedUntil(): number;
  readonly breaker: CircuitBreaker;
  /** The last answer was a failure: what goes together would fail, or be in doubt, together. */
  isFailing(): boolean;
}

export function createRateLimiter(initial: CircuitBreaker = CLOSED): RateLimiter {
  let pace: Pace = INITIAL_PACE;
  let breaker = initial;
  let noticed = 0;

  const blockedUntil = (): number => Math.max(nextStartAt(pace), breaker.openUntil);

  return {
    notice(now) {
      if (now < noticed) {
        pace = shifted(pace, now - noticed);
        breaker = { ...breaker, openUntil: breaker.openUntil === 0 ? 0 : breaker.openUntil + now - noticed };
      }
      noticed = now;
    },
    learn(result, now) {
      if (result.outcome === "skipped" || (result.outcome === "refused" && result.channel)) return;
      if (result.outcome === "retryable" && asksForLess(result)) {
        pace = afterRateLimit(pace, now, result.retryAfterMs);
      } else if (result.outcome === "retryable" || result.outcome === "in_doubt") {
        breaker = afterFailure(breaker, now);
      } else {
        pace = afterSuccess(pace, now);
        breaker = CLOSED;
      }
    },
    pause(until) {
      pace = { ...pace, pausedUntil: Math.max(pace.pausedUntil, until) };
    },
    started(now) {
      pace = afterStart(pace, now);
    },
    allowance(now) {
      if (now < blockedUntil()) return 0;
      // A half-open circuit lets a single probe through.
      return circuitOf(breaker, now) === "closed" ? pace.window : 1;
    },
    blockedUntil,
    get breaker() {
      return breaker;
    },
    isFailing: () => breaker.failures > 0,
  };
}

/** Some networks say so with another status, and how long to wait. */
function asksForLess({ status, retryAfterMs }: Extract<DispatchResult, { outcome: "retryable" }>): boolean {
  return status === TOO_MANY_REQUESTS || retryAfterMs !== undefined;
}
