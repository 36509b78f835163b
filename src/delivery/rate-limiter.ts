import type { DispatchResult } from "../networks/network.ts";
import type { ChannelState } from "../../projections/deliveries.ts";

/** HTTP status of a network that asks for fewer requests. */
const TOO_MANY_REQUESTS = 429;

/**
 * Limits how much of a channel is used, by a pace and a circuit breaker that learn from its answers. Times are ms since
 * the epoch.
 */
export type RateLimiter = ReturnType<typeof createRateLimiter>;

export function createRateLimiter(initial: CircuitBreaker = CLOSED) {
  let pace: Pace = INITIAL_PACE;
  let breaker = initial;
  let noticed = 0;

  const blockedUntil = (): number => Math.max(nextStartAt(pace), breaker.openUntil);

  return {
    /** Reports the current time. If the clock was set back, pauses move back with it, so that nothing waits longer. */
    notice(now: number): void {
      if (now < noticed) {
        pace = shifted(pace, now - noticed);
        breaker = { ...breaker, openUntil: breaker.openUntil === 0 ? 0 : breaker.openUntil + now - noticed };
      }
      noticed = now;
    },
    learn(result: DispatchResult, now: number): void {
      if (result.outcome === "skipped" || (result.outcome === "refused" && result.channel)) return;
      const { outcome } = result;
      // Some networks use another status and say how long to wait.
      if (outcome === "retryable" && (result.status === TOO_MANY_REQUESTS || result.retryAfterMs !== undefined)) {
        pace = afterRateLimit(pace, now, result.retryAfterMs);
      } else if (outcome === "retryable" || outcome === "in_doubt") {
        breaker = afterFailure(breaker, now);
      } else {
        pace = afterSuccess(pace, now);
        breaker = CLOSED;
      }
    },
    /** Pauses a channel whose network accepted a request but asks for a rest. */
    pause(until: number): void {
      pace = { ...pace, pausedUntil: Math.max(pace.pausedUntil, until) };
    },
    started(now: number): void {
      pace = afterStart(pace, now);
    },
    /** Returns how many may be in flight now: none while the channel is paused or its circuit is open. */
    allowance(now: number): number {
      if (now < blockedUntil()) return 0;
      // A half-open circuit lets a single probe through.
      return toCircuit(breaker, now) === "closed" ? pace.window : 1;
    },
    /** Returns when something may start again; a past time if something may start now. */
    blockedUntil,
    get breaker(): CircuitBreaker {
      return breaker;
    },
    /** True if the last answer was a failure. Dispatches sent together would then fail, or be in doubt, together. */
    isFailing: (): boolean => breaker.failures > 0,
  };
}

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

/** First and longest time for which the circuit is open. */
const OPEN_MIN_MS = 1_000;
const OPEN_MAX_MS = 60_000;

export const CLOSED: CircuitBreaker = { failures: 0, openUntil: 0 };

/**
 * Returns the breaker that the log holds. It opens for at most the longest time from `now`, in case the clock was set
 * back.
 */
export function breakerIn({ circuit }: Pick<ChannelState, "circuit">, now: number): CircuitBreaker {
  if (circuit === null) return CLOSED;
  return { failures: circuit.failures, openUntil: Math.min(Date.parse(circuit.until), now + OPEN_MAX_MS) };
}

export function afterFailure(breaker: CircuitBreaker, now: number): CircuitBreaker {
  // Requests in flight when it opens fail together, and count as one observation.
  if (toCircuit(breaker, now) === "open") return breaker;
  const next = breaker.failures + 1;
  if (next < TRIP_AFTER) return { failures: next, openUntil: 0 };
  const openMs = Math.min(OPEN_MAX_MS, OPEN_MIN_MS * 2 ** (next - TRIP_AFTER));
  return { failures: next, openUntil: now + openMs };
}

export function toCircuit({ openUntil }: CircuitBreaker, now: number): Circuit {
  if (openUntil === 0) return "closed";
  return now < openUntil ? "open" : "half_open";
}

/**
 * The speed of a channel, learned from its answers (AIMD): more at once after successes, less after a 429, and a pause
 * as long as the network asks for. Pure: times are ms since the epoch.
 */
export interface Pace {
  /** Dispatches in flight at once. */
  readonly window: number;
  /** Successes since the window last changed. */
  readonly streak: number;
  readonly pausedUntil: number;
  /**
   * Time between the starts of two dispatches, in ms; 0 until a network complained. A 429 teaches it and it shrinks
   * slowly, because networks that limit messages a second ignore how many are in flight.
   */
  readonly spacing: number;
  /** When the spacing last changed. */
  readonly spacedAt: number;
  readonly lastStart: number;
}

/**
 * Most dispatches of a channel in flight at once. A network may accept larger bursts for a while, but punishes them in
 * the long run.
 */
export const WINDOW_MAX = 16;

/** Pause after a 429 without Retry-After: the networks that document a pace allow one message a second. */
const PAUSE_DEFAULT_MS = 1_000;

/** The first spacing. Once it has shrunk below half of that, the network is assumed to have no such limit. */
const SPACING_MIN_MS = 100;
const SPACING_MAX_MS = 10_000;

/**
 * A 429 multiplies the spacing by the first. The spacing is at least the second times the requested pause, since a
 * network that asks for a long pause has a small allowance.
 */
const SPACING_GROWTH = 1.5;
const SPACING_OF_PAUSE = 0.25;

/**
 * After a minute without a change, the spacing shrinks by a tenth. So the network's limit is exceeded at most once in
 * several minutes.
 */
const RELAX_EVERY_MS = 60_000;
const RELAX_FACTOR = 0.9;

export const INITIAL_PACE: Pace = { window: 1, streak: 0, pausedUntil: 0, spacing: 0, spacedAt: 0, lastStart: 0 };

/** Widens the window only after successes have filled it once. */
export function afterSuccess(pace: Pace, now: number): Pace {
  const relaxed = relax(pace, now);
  if (relaxed.streak + 1 < relaxed.window) return { ...relaxed, streak: relaxed.streak + 1 };
  return { ...relaxed, window: Math.min(WINDOW_MAX, relaxed.window + 1), streak: 0 };
}

export function afterRateLimit(pace: Pace, now: number, retryAfterMs: number | undefined): Pace {
  const slower = {
    ...pace,
    window: Math.max(1, Math.floor(pace.window / 2)),
    streak: 0,
    pausedUntil: Math.max(pace.pausedUntil, now + (retryAfterMs ?? PAUSE_DEFAULT_MS)),
  };
  // Requests in flight at the same time count as one observation.
  if (now < pace.pausedUntil) return slower;
  const asked = (retryAfterMs ?? 0) * SPACING_OF_PAUSE;
  const wanted = Math.max(SPACING_MIN_MS, pace.spacing * SPACING_GROWTH, asked);
  const spacing = Math.ceil(Math.min(SPACING_MAX_MS, wanted));
  return { ...slower, spacing, spacedAt: now };
}

export function afterStart(pace: Pace, now: number): Pace {
  return { ...pace, lastStart: now };
}

/** Returns the pace after the clock was moved by `ms`. */
export function shifted(pace: Pace, ms: number): Pace {
  const { pausedUntil, spacedAt, lastStart } = pace;
  return { ...pace, pausedUntil: pausedUntil + ms, spacedAt: spacedAt + ms, lastStart: lastStart + ms };
}

/** Returns when the next dispatch may start; a past time if it may start now. */
export function nextStartAt({ pausedUntil, lastStart, spacing }: Pace): number {
  return Math.max(pausedUntil, spacing === 0 ? 0 : lastStart + spacing);
}

function relax(pace: Pace, now: number): Pace {
  if (pace.spacing === 0 || now - pace.spacedAt < RELAX_EVERY_MS) return pace;
  const spacing = Math.floor(pace.spacing * RELAX_FACTOR);
  return { ...pace, spacing: spacing < SPACING_MIN_MS / 2 ? 0 : spacing, spacedAt: now };
}

/** Shortest span, in ms, over which requests are counted. */
const SPAN_MS = 50;

/** Requests a second from which on they wait for each other. Fewer leave time for everything. */
const BUSY_PER_SECOND = 1_000;

/**
 * Clicks a second for each channel that are still dispatched while busy, so that a constant load does not stop
 * delivery.
 */
const SHARE_PER_SECOND = 500;

/** Most clicks that are saved up for one request. Requests wait while it is made and recorded. */
const SAVED_MAX = 250;

/** Lets delivery yield to requests: a caller waits for its answer, and pending dispatches wait for a network anyway. */
export type IntakePriority = ReturnType<typeof createIntakePriority>;

/** `requests` returns how many have arrived so far. */
export function createIntakePriority(requests: () => number) {
  let counted = requests();
  let countedAt = 0;
  let busy = false;
  let saved = SAVED_MAX;
  let savedAt = 0;

  const isBusy = (now: number): boolean => {
    const ms = Math.abs(now - countedAt);
    if (ms < SPAN_MS) return busy;
    const count = requests();
    busy = (count - counted) / ms >= BUSY_PER_SECOND / 1_000;
    counted = count;
    countedAt = now;
    return busy;
  };

  return {
    /** True if requests arrive so fast at `now`, in ms since the epoch, that they wait for each other. */
    isBusy,
    /** Returns how many clicks may be dispatched at `now`; Infinity unless it is busy. */
    share(now: number): number {
      if (!isBusy(now)) return Infinity;
      // Nothing is saved up while a clock that was set back catches up.
      saved = Math.min(SAVED_MAX, saved + (Math.max(0, now - savedAt) / 1_000) * SHARE_PER_SECOND);
      savedAt = now;
      return Math.floor(saved);
    },
    /** Counts clicks that were dispatched. */
    took(clicks: number): void {
      saved = Math.max(0, saved - clicks);
    },
  };
}
