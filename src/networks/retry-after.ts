import { readHttpDate } from "./http-date.ts";

/** Never at once, whatever a network says. */
const RETRY_AFTER_MIN_MS = 1000;

/**
 * The widest windows of any network are a day, and Telegram's flood waits are not known to be longer: what asks for more
 * is broken, and must not silence a channel for good. It is asked once a day then.
 */
export const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

/**
 * Seconds as a network gives them (`Retry-After`, Telegram's `retry_after`), in ms and within bounds; undefined for
 * what is no number: the caller's own back-off applies then.
 */
export function retryAfterMs(seconds: string | number | null | undefined): number | undefined {
  const text = String(seconds).trim();
  return /^-?\d+(\.\d+)?$/.test(text) ? bounded(Math.ceil(Number(text) * 1000)) : undefined;
}

/**
 * The answer's `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3), which counts from the answer's own `Date`,
 * so that a clock that differs from the network's makes the wait neither longer nor shorter.
 */
export function retryAfterOf(headers: Headers): number | undefined {
  const told = headers.get("retry-after")?.trim();
  if (told === undefined) return undefined;
  const answeredAt = readHttpDate(headers.get("date") ?? "", 0);
  const until = answeredAt === undefined ? undefined : readHttpDate(told, answeredAt);
  return until === undefined || answeredAt === undefined ? retryAfterMs(told) : bounded(until - answeredAt);
}

function bounded(ms: number): number {
  return Math.min(RETRY_AFTER_MAX_MS, Math.max(RETRY_AFTER_MIN_MS, ms));
}
