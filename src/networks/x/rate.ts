import type { RateWindow } from "../network.ts";
import { parseRetryAfter } from "../retry-after.ts";

/** X's windows: of the endpoint in 15 minutes; of the user and of the app in 24 hours. */
const ENDPOINT_PREFIX = "x-rate-limit";
const DAY_PREFIXES = ["x-user-limit-24hour", "x-app-limit-24hour"];

/** A reset just behind us must not make a busy loop. */
const RESET_IN_MS_MIN = 1000;

/** X's longest window; a header that gives more is broken. */
const RESET_IN_MS_MAX = 24 * 60 * 60_000;

/** A 429 that does not say until when: X's usual window. */
const UNKNOWN_WINDOW_MS = 15 * 60_000;

/**
 * The window to keep to: of the exhausted ones the one that resets last; else the one of the endpoint; else the tighter
 * one of the day, whose messages are not to be spread over the day while the endpoint takes more. Undefined where no
 * window is given whole. `now` in ms since the epoch.
 */
export function parseRate(headers: Headers, now: number): RateWindow | undefined {
  const endpoint = parseWindow(headers, ENDPOINT_PREFIX, now);
  const days = DAY_PREFIXES.map((prefix) => parseWindow(headers, prefix, now)).filter((window) => window !== undefined);
  const all = endpoint === undefined ? days : [endpoint, ...days];
  const exhausted = all.filter(({ remaining }) => remaining === 0).sort((one, other) => other.resetAt - one.resetAt)[0];
  return exhausted ?? endpoint ?? days.sort((one, other) => one.remaining - other.remaining)[0];
}

/**
 * When a request refused with 429 may be made again: once the exhausted window is over (the others were not the reason)
 * and `Retry-After` has passed. Where X says that something is left and refuses all the same, `Retry-After` decides, else
 * the window's reset; where nothing is given, X's usual window.
 */
export function calculateRetryAt(headers: Headers, now: number): number {
  const rate = parseRate(headers, now);
  const asked = parseRetryAfter(headers);
  if (rate?.remaining === 0) return Math.max(rate.resetAt, now + (asked ?? 0));
  const unknown = Math.min(rate?.resetAt ?? Infinity, now + UNKNOWN_WINDOW_MS);
  return asked === undefined ? unknown : now + asked;
}

function parseWindow(headers: Headers, prefix: string, now: number): RateWindow | undefined {
  const limit = integer(headers.get(`${prefix}-limit`));
  const remaining = integer(headers.get(`${prefix}-remaining`));
  const resetSeconds = integer(headers.get(`${prefix}-reset`));
  if (limit === undefined || remaining === undefined || resetSeconds === undefined) return undefined;
  const resetIn = resetSeconds * 1000 - networkTime(headers, now);
  const bounded = Math.min(RESET_IN_MS_MAX, Math.max(RESET_IN_MS_MIN, resetIn));
  return {
    limit: Math.max(0, limit),
    remaining: Math.max(0, remaining),
    resetAt: now + bounded,
  };
}

/** X's clock by the `Date` header, ours where it is missing. It is cut to the second, so we wait a little too long. */
function networkTime(headers: Headers, now: number): number {
  const date = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(date) ? now : date;
}

function integer(text: string | null): number | undefined {
  return text !== null && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
}
