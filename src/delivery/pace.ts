/**
 * How fast a channel is used, learned from its answers: additive increase after successes, multiplicative decrease
 * after a 429 (AIMD), and a pause as long as the network asks for. Pure: times are ms since the epoch.
 */
export interface Pace {
  /** Dispatches in flight at once. */
  readonly window: number;
  /** Successes since the window last changed. */
  readonly streak: number;
  readonly pausedUntil: number;
}

/** No channel gets more at once: what a network would take in bursts it would punish in the long run. */
export const WINDOW_MAX = 16;

/** Without a Retry-After: the pace of those networks that name one, a message a second. */
const PAUSE_DEFAULT_MS = 1_000;

export const INITIAL_PACE: Pace = { window: 1, streak: 0, pausedUntil: 0 };

/** A window is only widened after it was filled once with successes. */
export function afterSuccess(pace: Pace): Pace {
  if (pace.streak + 1 < pace.window) return { ...pace, streak: pace.streak + 1 };
  return { ...pace, window: Math.min(WINDOW_MAX, pace.window + 1), streak: 0 };
}

export function afterThrottle(pace: Pace, now: number, retryAfterMs: number | undefined): Pace {
  return {
    window: Math.max(1, Math.floor(pace.window / 2)),
    streak: 0,
    pausedUntil: Math.max(pace.pausedUntil, now + (retryAfterMs ?? PAUSE_DEFAULT_MS)),
  };
}
