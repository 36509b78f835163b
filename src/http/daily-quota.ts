import type { Clock } from "../platform/clock.ts";
import type { Allowance } from "./rate-limit.ts";

/** The messages of one day. */
export interface DailyQuota {
  readonly limit: number;
  readonly used: () => number;
  /** Milliseconds since the epoch. */
  readonly resetsAt: () => number;
}

export interface QuotaDeps {
  readonly quota: DailyQuota;
  readonly clock: Clock;
}

export function quotaLeft({ limit, used: usedNow }: DailyQuota) {
  const used = usedNow();
  return { limit, used, remaining: Math.max(0, limit - used) };
}

/** The quota as `RateLimit` headers show it. */
export function quotaAllowance({ quota, clock }: QuotaDeps): Allowance {
  const { limit, remaining } = quotaLeft(quota);
  const seconds = Math.max(1, Math.ceil((quota.resetsAt() - clock()) / 1000));
  return { limit, windowSeconds: 86_400, left: remaining, seconds };
}
