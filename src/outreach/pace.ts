import type { RateWindow } from "../networks/network.ts";

/** With no header seen: one message a minute, X's documented 15 in 15 minutes. */
const DEFAULT_SPACING_MS = 60_000;

/**
 * How long to wait after a send until the next one. An exhausted window is waited out; else a fixed spacing where one
 * is configured; else what is left of the window is spread over the time to its reset. All times in ms.
 */
export function spacingMs(rate: RateWindow | undefined, now: number, fixedMs: number | undefined): number {
  const untilReset = rate === undefined ? 0 : Math.max(0, rate.resetAt - now);
  if (rate !== undefined && rate.remaining <= 0) return untilReset;
  if (fixedMs !== undefined) return fixedMs;
  if (rate === undefined) return DEFAULT_SPACING_MS;
  return Math.ceil(untilReset / rate.remaining);
}
