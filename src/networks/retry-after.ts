/** Never at once, whatever a network says. */
const RETRY_AFTER_MIN_MS = 1000;

/** About what all attempts of a dispatch take together: a longer pause would mean never. */
const RETRY_AFTER_MAX_MS = 60 * 60_000;

/**
 * Seconds as a network gives them (`Retry-After`, Telegram's `retry_after`), in ms and within bounds; undefined for
 * what is no number: the caller's own back-off applies then. `mostMs`: for who waits longer than a dispatch is tried.
 */
export function retryAfterMs(
  seconds: string | number | null | undefined,
  mostMs: number = RETRY_AFTER_MAX_MS,
): number | undefined {
  const text = String(seconds).trim();
  if (!/^-?\d+(\.\d+)?$/.test(text)) return undefined;
  return Math.min(mostMs, Math.max(RETRY_AFTER_MIN_MS, Math.ceil(Number(text) * 1000)));
}
