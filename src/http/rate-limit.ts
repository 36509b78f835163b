/** Counts per address and minute (fixed windows). */
export interface RateLimit {
  /** Counts one and answers the seconds to wait when the limit is passed, else undefined. */
  take(address: string): number | undefined;
  /** The seconds to wait when the limit is used up, without counting. */
  check(address: string): number | undefined;
}

const WINDOW_MS = 60_000;

/** Addresses counted at once; past it the window is cut short, so that a flood cannot fill the memory. */
const ADDRESSES_MAX = 50_000;

export function createRateLimit(limit: number, clock: () => number): RateLimit {
  let counts = new Map<string, number>();
  let endsAt = 0;

  const refresh = (now: number): void => {
    if (now < endsAt && counts.size < ADDRESSES_MAX) return;
    counts = new Map();
    endsAt = now + WINDOW_MS;
  };
  const waitOf = (used: number, now: number): number | undefined =>
    used <= limit ? undefined : Math.max(1, Math.ceil((endsAt - now) / 1000));

  return {
    take(address) {
      const now = clock();
      refresh(now);
      const used = (counts.get(address) ?? 0) + 1;
      counts.set(address, used);
      return waitOf(used, now);
    },
    check(address) {
      const now = clock();
      refresh(now);
      return waitOf((counts.get(address) ?? 0) + 1, now);
    },
  };
}
