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
