/** Fixed windows of requests, as X counts them. Times in ms. */
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
