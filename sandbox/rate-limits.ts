/** Rate limit: `limit` requests in each period, at once or spread. Used capacity returns evenly over time. */
export interface Rate {
  readonly limit: number;
  readonly periodMs: number;
}

/** Token bucket for a rate limit (as GCRA, https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm). Times in ms. */
export interface Bucket {
  /** Returns the wait until one more request is allowed, in ms; 0 if it is allowed now. */
  waitMs(now: number, rate: Rate): number;
  take(now: number, rate: Rate): void;
}

export function createBucket(): Bucket {
  // Time at which all used capacity will have returned.
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

/**
 * Counts one request in each bucket and returns 0. If one of them is exhausted, counts nothing and returns the wait in
 * ms.
 */
export function takeTurn(now: number, ...turns: readonly (Rate & { readonly bucket: Bucket })[]): number {
  const wait = Math.max(...turns.map(({ bucket, ...rate }) => bucket.waitMs(now, rate)));
  if (wait === 0) for (const { bucket, ...rate } of turns) bucket.take(now, rate);
  return wait;
}

/** Fixed windows in which X and Discord count requests, one for each key. Times in ms. */
export interface Windows {
  /**
   * Counts a request in the window of this key; a `cost` of 0 only reads it. `allowed` is false if the window was
   * already exhausted.
   */
  take(key: string, limit: number, lengthMs: number, now: number, cost?: 0 | 1): WindowState;
}

export interface WindowState {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly resetAt: number;
}

export function createWindows(): Windows {
  // Open windows by key. There is one entry per endpoint and account, so the map stays small.
  const open = new Map<string, { used: number; resetAt: number }>();
  return {
    take(key, limit, lengthMs, now, cost = 1) {
      let window = open.get(key);
      if (window === undefined || now >= window.resetAt) {
        window = { used: 0, resetAt: now + lengthMs };
        open.set(key, window);
      }
      const allowed = window.used < limit;
      if (allowed) window.used += cost;
      return { allowed, limit, remaining: Math.max(0, limit - window.used), resetAt: window.resetAt };
    },
  };
}
