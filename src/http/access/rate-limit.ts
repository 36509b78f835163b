import { toNetwork } from "../../platform/ip-address.ts";

/** State of a request limit for one caller: how many requests it allows in a window, and how many are left. */
export interface Allowance {
  readonly limit: number;
  readonly windowSeconds: number;
  readonly left: number;
  /** Seconds until the caller's full limit is available again. */
  readonly seconds: number;
}

export interface DailyQuota {
  readonly limit: number;
  readonly used: () => number;
  /** Returns the time at which the day's quota starts over, in ms since the epoch. */
  readonly resetsAt: () => number;
}

export function quotaLeft({ limit, used: usedNow }: DailyQuota) {
  const used = usedNow();
  return { limit, used, remaining: Math.max(0, limit - used) };
}

export function quotaAllowance(quota: DailyQuota, now: number): Allowance {
  const { limit, remaining } = quotaLeft(quota);
  const seconds = Math.max(1, Math.ceil((quota.resetsAt() - now) / 1000));
  return { limit, windowSeconds: 86_400, left: remaining, seconds };
}

export const WINDOW_MS = 60_000;

/**
 * Maximum number of addresses counted in one window. With more, the window ends early, so that a flood of addresses
 * cannot fill the memory.
 */
const ADDRESSES_MAX = 50_000;

export type RateLimit = ReturnType<typeof createRateLimit>;

/**
 * Counts requests by address in windows of a minute. Addresses of one IPv6 network count as one. `limitNow` is called
 * at each request, because the limit may change.
 */
export function createRateLimit(limitNow: () => number, clock: () => number) {
  let counts = new Map<string, number>();
  let endsAt = 0;

  const refresh = (now: number): void => {
    if (now < endsAt && counts.size < ADDRESSES_MAX) return;
    counts = new Map();
    endsAt = now + WINDOW_MS;
  };
  return {
    /**
     * Counts one request of the address. Returns the seconds until the window ends if the limit is exceeded, else
     * undefined.
     */
    take(address: string): number | undefined {
      const now = clock();
      refresh(now);
      const network = toNetwork(address);
      const used = (counts.get(network) ?? 0) + 1;
      counts.set(network, used);
      return used <= limitNow() ? undefined : Math.max(1, Math.ceil((endsAt - now) / 1000));
    },
    /** Returns how many requests an address has left in this window. Counts no request. */
    allowance(address: string): Allowance {
      const now = clock();
      refresh(now);
      const limit = limitNow();
      const left = Math.max(0, limit - (counts.get(toNetwork(address)) ?? 0));
      const seconds = Math.max(1, Math.ceil((endsAt - now) / 1000));
      return { limit, windowSeconds: WINDOW_MS / 1000, left, seconds };
    },
  };
}

/**
 * Adds a limit to the response headers `RateLimit-Policy` and `RateLimit` (IETF draft), or replaces the limit of that
 * name.
 */
export function setRateLimitHeaders(
  headers: Record<string, string>,
  name: string,
  { limit, windowSeconds, left, seconds }: Allowance,
): void {
  headers["ratelimit-policy"] = withItem(headers["ratelimit-policy"], name, `q=${limit};w=${windowSeconds}`);
  headers["ratelimit"] = withItem(headers["ratelimit"], name, `r=${left};t=${seconds}`);
}

/** Adds an item to a comma-separated response header, replacing an item of the same name. */
function withItem(list: string | undefined, name: string, parameters: string): string {
  const others = list?.split(", ").filter((item) => !item.startsWith(`"${name}";`)) ?? [];
  return [...others, `"${name}";${parameters}`].join(", ");
}
