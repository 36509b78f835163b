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

/** Counts one request in each bucket. Gives the ms to wait when it is one too many for any, and counts nothing; else 0. */
export function takeTurn(now: number, ...turns: readonly (Rate & { readonly bucket: Bucket })[]): number {
  const wait = Math.max(...turns.map(({ bucket, ...rate }) => bucket.waitMs(now, rate)));
  if (wait === 0) for (const { bucket, ...rate } of turns) bucket.take(now, rate);
  return wait;
}

/** Fixed windows of requests, as X and Discord count them. Times in ms. */
export interface Windows {
  /** Counts `cost` requests (0: only looks); `allowed` is false when the window was used up before. */
  take(key: string, limit: number, lengthMs: number, now: number, cost?: 0 | 1): WindowState;
}

export interface WindowState {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly resetAt: number;
}

export function createWindows(): Windows {
  // One for each endpoint and account, so it stays small.
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
