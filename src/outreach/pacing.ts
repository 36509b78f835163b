import type { RateWindow } from "../networks/network.ts";

/** With no header seen: one message a minute, X's documented 15 in 15 minutes. */
const DEFAULT_SPACING_MS = 60_000;

/** Sends at even distances look like what they are, and several accounts would keep in step: a fifth of it is chance. */
const JITTER = 0.2;

/**
 * How long to wait after a send until the next one. An exhausted window is waited out; else a fixed spacing where one
 * is configured; else what is left of the window is spread over the time to its reset, a little sooner or later by
 * chance (`random` from 0 to 1): the next answer tells what is left, so that nothing adds up. All times in ms.
 */
export function spacingMs(
  rate: RateWindow | undefined,
  now: number,
  fixedMs: number | undefined,
  random: number,
): number {
  const untilReset = rate === undefined ? 0 : Math.max(0, rate.resetAt - now);
  if (rate !== undefined && rate.remaining <= 0) return untilReset;
  if (fixedMs !== undefined) return fixedMs;
  // Without a header nothing would even out a message that came too soon.
  if (rate === undefined) return Math.ceil(DEFAULT_SPACING_MS * (1 + JITTER * random));
  return Math.ceil((untilReset / rate.remaining) * (1 + JITTER * (2 * random - 1)));
}
