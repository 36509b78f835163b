const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Number of days that the story covers. */
export const STORY_DAYS = 42;
/** Time at which the story's last day ends, in ms after midnight. */
const STORY_END_MS = 11 * HOUR_MS + 42 * 60_000;

/** Clock that the product and the simulated networks use while the demo's invented history is written. */
export interface StoryClock {
  /** Stops the clock at this time, in ms since the epoch. */
  freezeAt(ms: number): void;
}

type Act = () => Promise<unknown>;

/** Returns a generator of numbers in [0, 1) that always gives the same ones (mulberry32). */
export function createSeeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export type Timeline = ReturnType<typeof createTimeline>;

/**
 * Creates the timeline of a story that ends at `now`, in ms since the epoch. It performs acts in the order of their
 * times. `spanMs`: all days of the story are compressed into this time.
 */
export function createTimeline(clock: StoryClock, now: number, spanMs?: number) {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  /**
   * Factor that shortens the times of today's events in the demo's invented history, so that the history ends at `now`
   * even early in the day.
   */
  const squeeze = Math.min(1, (now - today) / STORY_END_MS);
  const scale = spanMs === undefined ? 1 : spanMs / (STORY_DAYS * DAY_MS);
  const acts: { readonly at: number; readonly act: Act }[] = [];
  let done = 0;

  const insert = (at: number, act: Act): void => {
    let [low, high] = [done, acts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (acts[middle]!.at <= at) low = middle + 1;
      else high = middle;
    }
    acts.splice(low, 0, { at, act });
  };

  return {
    now,
    /** Returns the moment `ms` after midnight (UTC) of the day that many days ago. */
    moment(daysAgo: number, ms: number): number {
      const at = today - daysAgo * DAY_MS + ms * (daysAgo === 0 ? squeeze : 1);
      return now - (now - at) * scale;
    },
    /**
     * Returns the time `ms` after `at`, or before it if `ms` is negative. The interval is compressed as much as the
     * demo's invented history is compressed at `at`.
     */
    after: (at: number, ms: number): number => at + ms * scale * (now - at <= (now - today) * scale ? squeeze : 1),
    /** Time of today's part of the story, in ms from midnight on. */
    todayMs: Math.max(STORY_END_MS, now - today),
    /**
     * Schedules the function `act` for the time `ms` (ms since the epoch) in the demo's invented history. Ignores it if
     * that time is after the end of the history.
     */
    at(ms: number, act: Act): void {
      if (ms <= now) insert(ms, act);
    },
    async play(): Promise<void> {
      while (done < acts.length) {
        const { at, act } = acts[done++]!;
        clock.freezeAt(Math.floor(at));
        await act();
      }
    },
  };
}
