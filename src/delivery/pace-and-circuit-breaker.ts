import type { DispatchResult } from "../networks/network.ts";
import type { ChannelState } from "../../projections/deliveries.ts";

/** HTTP status by which a network asks for fewer requests. */
const TOO_MANY_REQUESTS = 429;

/**
 * Rate limiter of one channel: a pace and a circuit breaker that learn from the network's answers. Times are ms since
 * the epoch.
 */
export type RateLimiter = ReturnType<typeof createRateLimiter>;

export function createRateLimiter(initial: CircuitBreaker = CLOSED) {
  let pace: Pace = INITIAL_PACE;
  let breaker = initial;
  let noticed = 0;

  const blockedUntil = (): number => Math.max(nextStartAt(pace), breaker.openUntil);

  return {
    /**
     * Tells the rate limiter the current time. If the clock was set back, pauses move back with it, so that nothing
     * waits longer.
     */
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
      // Some networks ask for a pause by a status other than 429, so an answer that says how long to wait counts as
      // well.
      if (outcome === "retryable" && (result.status === TOO_MANY_REQUESTS || result.retryAfterMs !== undefined)) {
        pace = afterRateLimit(pace, now, result.retryAfterMs);
      } else if (outcome === "retryable" || outcome === "in_doubt") {
        breaker = afterFailure(breaker, now);
      } else {
        pace = afterSuccess(pace, now);
        breaker = CLOSED;
      }
    },
    /** Pauses the channel until a time, because its network accepted a request but asks for a rest. */
    pause(until: number): void {
      pace = { ...pace, pausedUntil: Math.max(pace.pausedUntil, until) };
    },
    started(now: number): void {
      pace = afterStart(pace, now);
    },
    /**
     * Returns how many dispatches may be in flight now: 0 until the network's requested pause and the spacing after the
     * last start are over, and while the circuit is open; 1, as a probe, while it is half-open.
     */
    allowance(now: number): number {
      if (now < blockedUntil()) return 0;
      // A half-open circuit lets a single dispatch through as a probe.
      return toCircuit(breaker, now) === "closed" ? pace.window : 1;
    },
    /** Returns the time at which a dispatch may start again; a past time if one may start now. */
    blockedUntil,
    get breaker(): CircuitBreaker {
      return breaker;
    },
    /**
     * True if the network's last answer was a failure. Dispatches sent together would then fail, or be in doubt,
     * together.
     */
    isFailing: (): boolean => breaker.failures > 0,
  };
}

/**
 * Circuit breaker of one channel. After several transient failures in a row, it lets nothing be sent for a while; then
 * a single request decides. Pure; times are ms since the epoch.
 */
export interface CircuitBreaker {
  /** Number of transient failures since the last success. */
  readonly failures: number;
  /** Time until which the circuit is open; 0 while it is closed. */
  readonly openUntil: number;
}

export type Circuit = "closed" | "open" | "half_open";

/** Number of failures in a row that open the circuit breaker. */
const TRIP_AFTER = 5;

/** Time in ms for which the circuit breaker opens first. The time doubles with each further failure. */
const OPEN_MIN_MS = 1_000;
/** Maximum time in ms for which the circuit breaker is open. */
const OPEN_MAX_MS = 60_000;

export const CLOSED: CircuitBreaker = { failures: 0, openUntil: 0 };

/**
 * Returns the circuit breaker's state from the log. Counted from `now`, it is open for at most the maximum time, in
 * case the clock was set back.
 */
export function breakerIn({ circuit }: ChannelState, now: number): CircuitBreaker {
  if (circuit === null) return CLOSED;
  return { failures: circuit.failures, openUntil: Math.min(Date.parse(circuit.until), now + OPEN_MAX_MS) };
}

export function afterFailure(breaker: CircuitBreaker, now: number): CircuitBreaker {
  // Requests that were in flight when the circuit breaker opened fail together, so they count as one failure.
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
  /** Number of dispatches that may be in flight at once. */
  readonly window: number;
  /** Number of successful dispatches since `window` (the limit of dispatches in flight at once) last changed. */
  readonly streak: number;
  readonly pausedUntil: number;
  /**
   * Minimum time between the starts of two dispatches, in ms; 0 until the network answered 429. Each 429 increases the
   * time, which then shrinks slowly. Networks that limit messages per second ignore how many are in flight.
   */
  readonly spacing: number;
  /** Time at which the spacing last changed. */
  readonly spacedAt: number;
  readonly lastStart: number;
}

/**
 * Maximum number of dispatches of a channel in flight at once. A network may accept larger bursts for a while, but
 * punishes them in the long run.
 */
export const WINDOW_MAX = 16;

/** Pause in ms after a 429 without Retry-After: the networks that document a pace allow one message a second. */
const PAUSE_DEFAULT_MS = 1_000;

/**
 * Spacing in ms between two dispatches after the first 429. Once the spacing has shrunk below half of this, the network
 * is assumed to limit no rate of messages.
 */
const SPACING_MIN_MS = 100;
const SPACING_MAX_MS = 10_000;

/** Factor by which a 429 increases the spacing. */
const SPACING_GROWTH = 1.5;
/**
 * Minimum spacing as a share of the requested pause, because a network that asks for a long pause has a small
 * allowance.
 */
const SPACING_OF_PAUSE = 0.25;

/**
 * Time in ms without a change after which the spacing shrinks by a tenth. At one step a minute, it takes several
 * minutes until the spacing is too short again and the network's limit is exceeded.
 */
const RELAX_EVERY_MS = 60_000;
const RELAX_FACTOR = 0.9;

export const INITIAL_PACE: Pace = { window: 1, streak: 0, pausedUntil: 0, spacing: 0, spacedAt: 0, lastStart: 0 };

/**
 * Returns the pace after a successful request. The window, the number of requests in flight, grows by one only after as
 * many successes as its size.
 */
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
  // The network was asked to pause already, so this 429 belongs to the same burst of requests. It does not increase the
  // spacing once more.
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

/** Returns the time at which the next dispatch may start by this pace; a past time if it may start now. */
export function nextStartAt({ pausedUntil, lastStart, spacing }: Pace): number {
  return Math.max(pausedUntil, spacing === 0 ? 0 : lastStart + spacing);
}

function relax(pace: Pace, now: number): Pace {
  if (pace.spacing === 0 || now - pace.spacedAt < RELAX_EVERY_MS) return pace;
  const spacing = Math.floor(pace.spacing * RELAX_FACTOR);
  return { ...pace, spacing: spacing < SPACING_MIN_MS / 2 ? 0 : spacing, spacedAt: now };
}

/** Minimum time span over which HTTP requests are counted, in ms. */
const SPAN_MS = 50;

/**
 * Rate of HTTP requests, per second, at which they begin to queue behind each other. From this rate on, each channel
 * dispatches at most {@link SHARE_PER_SECOND} clicks a second; below it, delivery need not yield.
 */
const BUSY_PER_SECOND = 1_000;

/**
 * Number of clicks a second for each channel that are still dispatched while HTTP requests are many, so that a constant
 * load does not stop delivery.
 */
const SHARE_PER_SECOND = 500;

/**
 * Maximum number of clicks that are saved up for one request to a network. HTTP requests wait while the request is made
 * and recorded.
 */
const SAVED_MAX = 250;

/**
 * Lets delivery yield to HTTP requests: their callers wait for an answer, and pending dispatches wait for a network
 * anyway.
 */
export type IntakePriority = ReturnType<typeof createIntakePriority>;

/** Creates the rule by which delivery yields to HTTP requests. `requests` returns how many have arrived so far. */
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
    /** True if HTTP requests arrive so fast at `now`, in ms since the epoch, that they wait for each other. */
    isBusy,
    /**
     * Returns how many clicks may be dispatched at `now`, in ms since the epoch; Infinity unless HTTP requests are
     * many.
     */
    share(now: number): number {
      if (!isBusy(now)) return Infinity;
      // After a clock was set back, no share accrues until the clock has caught up.
      saved = Math.min(SAVED_MAX, saved + (Math.max(0, now - savedAt) / 1_000) * SHARE_PER_SECOND);
      savedAt = now;
      return Math.floor(saved);
    },
    /** Takes dispatched clicks off the number of clicks that may be dispatched while HTTP requests are many. */
    took(clicks: number): void {
      saved = Math.max(0, saved - clicks);
    },
  };
}
