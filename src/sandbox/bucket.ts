/** So many in a period: at once as a burst, or spread; what was used comes back evenly. */
export interface Rate {
  readonly limit: number;
  readonly periodMs: number;
}

/** A token bucket (as GCRA, https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm). Times in ms. */
export interface Bucket {
  /** How long until one more is allowed; 0: now. */
  waitMs(now: number, rate: Rate): number;
  take(now: number, rate: Rate): void;
}

export function createBucket(): Bucket {
  // When everything used so far will have come back.
  let fullAt = 0;
  return {
    waitMs(now, { limit, periodMs }) {
      const wait = fullAt - now - (periodMs - periodMs / limit);
      return Math.min(periodMs, Math.max(0, wait));
    },
    take(now, { limit, periodMs }) {
      fullAt = Math.max(fullAt, now) + periodMs / limit;
    },
  };
}
