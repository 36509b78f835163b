import type { DispatchResult } from "../networks/network.ts";
import type { ChannelState } from "../../projections/deliveries.ts";

/** HTTP status of a network that asks for less. */
const TOO_MANY_REQUESTS = 429;

/** How much of a channel may be used, as its answers teach: its pace and its circuit breaker. Times are ms since the epoch. */
export type RateLimiter = ReturnType<typeof createRateLimiter>;

export function createRateLimiter(initial: CircuitBreaker = CLOSED) {
  let pace: Pace = INITIAL_PACE;
  let breaker = initial;
  let noticed = 0;

  const blockedUntil = (): number => Math.max(nextStartAt(pace), breaker.openUntil);

  return {
    /** The time is `now`: when the clock was set back, what waits does not wait for longer. */
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
      // Some networks ask for less with another status, and say how long to wait.
      if (outcome === "retryable" && (result.status === TOO_MANY_REQUESTS || result.retryAfterMs !== undefined)) {
        pace = afterRateLimit(pace, now, result.retryAfterMs);
      } else if (outcome === "retryable" || outcome === "in_doubt") {
        breaker = afterFailure(breaker, now);
      } else {
        pace = afterSuccess(pace, now);
        breaker = CLOSED;
      }
    },
    /** The network took it, and asks for some rest. */
    pause(until: number): void {
      pace = { ...pace, pausedUntil: Math.max(pace.pausedUntil, until) };
    },
    started(now: number): void {
      pace = afterStart(pace, now);
    },
    /** How many may be in flight now; none while the channel is paused or its circuit is open. */
    allowance(now: number): number {
      if (now < blockedUntil()) return 0;
      // A half-open circuit lets a single probe through.
      return toCircuit(breaker, now) === "closed" ? pace.window : 1;
    },
    /** When something may start again; in the past while something may. */
    blockedUntil,
    get breaker(): CircuitBreaker {
      return breaker;
    },
    /** The last answer was a failure: what goes together would fail, or be in doubt, together. */
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
 * How fast a channel is used, learned from its answers (AIMD): more at once after successes, less after a 429, and a
 * pause as long as the network asks for. Networks that count messages a second do not care how many are in flight, so
 * a 429 also teaches a distance between two sends, which is forgotten slowly. Pure: times are ms since the epoch.
 */
export interface Pace {
  /** Dispatches in flight at once. */
  readonly window: number;
  /** Successes since the window last changed. */
  readonly streak: number;
  readonly pausedUntil: number;
  /** Between the starts of two dispatches, in ms; 0 until a network complained. */
  readonly spacing: number;
  /** When the spacing last changed. */
  readonly spacedAt: number;
  readonly lastStart: number;
}

/** No channel gets more at once: what a network would take in bursts it would punish in the long run. */
export const WINDOW_MAX = 16;

/** Without a Retry-After: the pace of those networks that name one, a message a second. */
const PAUSE_DEFAULT_MS = 1_000;

/** The first spacing learnt; below the half of it the network is taken for one without such a limit. */
const SPACING_MIN_MS = 100;
const SPACING_MAX_MS = 10_000;

/** After a 429 half as much again; a network that asks for a long pause has a small allowance. */
const SPACING_GROWTH = 1.5;
const SPACING_OF_PAUSE = 0.25;

/** A quiet minute is answered with a tenth less: so a network is asked too much once in several minutes at the most. */
const RELAX_EVERY_MS = 60_000;
const RELAX_FACTOR = 0.9;

export const INITIAL_PACE: Pace = { window: 1, streak: 0, pausedUntil: 0, spacing: 0, spacedAt: 0, lastStart: 0 };

/** A window is only widened after it was filled once with successes. */
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
  // Those in flight together are answered together: one lesson.
  if (now < pace.pausedUntil) return slower;
  const asked = (retryAfterMs ?? 0) * SPACING_OF_PAUSE;
  const wanted = Math.max(SPACING_MIN_MS, pace.spacing * SPACING_GROWTH, asked);
  const spacing = Math.ceil(Math.min(SPACING_MAX_MS, wanted));
  return { ...slower, spacing, spacedAt: now };
}

export function afterStart(pace: Pace, now: number): Pace {
  return { ...pace, lastStart: now };
}

/** The same where the clock was moved by `ms`. */
export function shifted(pace: Pace, ms: number): Pace {
  const { pausedUntil, spacedAt, lastStart } = pace;
  return { ...pace, pausedUntil: pausedUntil + ms, spacedAt: spacedAt + ms, lastStart: lastStart + ms };
}

/** When the next dispatch may start; in the past while it may. */
export function nextStartAt({ pausedUntil, lastStart, spacing }: Pace): number {
  return Math.max(pausedUntil, spacing === 0 ? 0 : lastStart + spacing);
}

function relax(pace: Pace, now: number): Pace {
  if (pace.spacing === 0 || now - pace.spacedAt < RELAX_EVERY_MS) return pace;
  const spacing = Math.floor(pace.spacing * RELAX_FACTOR);
  return { ...pace, spacing: spacing < SPACING_MIN_MS / 2 ? 0 : spacing, spacedAt: now };
}

/** Over at least so many ms the requests are counted. */
const SPAN_MS = 50;

/** Requests a second from which on they wait for each other: fewer leave time for everything. */
const BUSY_PER_SECOND = 1_000;

/** Clicks a second and channel that go on meanwhile, so that a load without end does not end delivery. */
const SHARE_PER_SECOND = 500;

/** The most that is saved up for one request: what it takes to make and to record is time that requests wait. */
const SAVED_MAX = 250;

/** Delivery gives way to requests: a caller waits for its answer, and pending dispatches wait for a network anyway. */
export type IntakePriority = ReturnType<typeof createIntakePriority>;

/** `requests`: how many came so far. */
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
    /** Whether so many requests come that they wait for each other, at `now`, ms since the epoch. */
    isBusy,
    /** How many clicks may go at `now`; without bound unless it is busy. */
    share(now: number): number {
      if (!isBusy(now)) return Infinity;
      // Nothing is saved up while a clock that was set back catches up.
      saved = Math.min(SAVED_MAX, saved + (Math.max(0, now - savedAt) / 1_000) * SHARE_PER_SECOND);
      savedAt = now;
      return Math.floor(saved);
    },
    /** So many went. */
    took(clicks: number): void {
      saved = Math.max(0, saved - clicks);
    },
  };
}
