/** Fixed windows of requests, as the networks count them. Times in ms. */
export interface Windows {
  /** Counts one request; `allowed` is false when the window was used up before. */
  take(key: string, limit: number, lengthMs: number, now: number): WindowState;
}

export interface WindowState {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly resetAt: number;
}

/** Windows kept; past it all start anew. */
const WINDOWS_MAX = 10_000;

export function createWindows(): Windows {
  const open = new Map<string, { used: number; resetAt: number }>();
  return {
    take(key, limit, lengthMs, now) {
      if (open.size > WINDOWS_MAX) open.clear();
      let window = open.get(key);
      if (window === undefined || now >= window.resetAt) {
        window = { used: 0, resetAt: now + lengthMs };
        open.set(key, window);
      }
      const allowed = window.used < limit;
      if (allowed) window.used++;
      return { allowed, limit, remaining: Math.max(0, limit - window.used), resetAt: window.resetAt };
    },
  };
}
