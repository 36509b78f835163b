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
export function parseRetryAfter(headers: Headers): number | undefined {
  const asked = headers.get("retry-after")?.trim();
  if (asked === undefined) return undefined;
  const answeredAt = readHttpDate(headers.get("date") ?? "");
  const until = readHttpDate(asked);
  return until === undefined || answeredAt === undefined ? retryAfterMs(asked) : bounded(until - answeredAt);
}

function bounded(ms: number): number {
  return Math.min(RETRY_AFTER_MAX_MS, Math.max(RETRY_AFTER_MIN_MS, ms));
}

/** What is sent today, and two forms from before 1995 that are still to be read: RFC 9110, section 5.6.7. */
const HTTP_DATES = [
  /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^\w{6,9}, \d\d-\w{3}-\d\d \d\d:\d\d:\d\d GMT$/,
  /^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/,
];

/** A date of a header, in ms since the epoch, undefined for anything else. */
function readHttpDate(text: string): number | undefined {
  if (!HTTP_DATES.some((form) => form.test(text))) return undefined;
  // The last of the forms does not name its zone.
  const date = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
  return Number.isNaN(date) ? undefined : date;
}
