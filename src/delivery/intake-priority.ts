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
