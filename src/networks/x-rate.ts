import type { RateWindow } from "./network.ts";

/** X's windows: of the endpoint in 15 minutes, of the user and of the app in a day. */
const WINDOW_PREFIXES = ["x-rate-limit", "x-user-limit-24hour", "x-app-limit-24hour"];

/** A reset just behind us must not make a busy loop. */
const RESET_IN_MS_MIN = 1000;

/** X's longest window; a header that tells of more is broken. */
const RESET_IN_MS_MAX = 24 * 60 * 60_000;

/** A 429 that does not say until when: X's usual window. */
const UNKNOWN_WINDOW_MS = 15 * 60_000;

/** The tightest window of an answer; undefined where no window is told whole. `now` in ms since the epoch. */
export function rateOf(headers: Headers, now: number): RateWindow | undefined {
  return WINDOW_PREFIXES.map((prefix) => windowOf(headers, prefix, now))
    .filter((window) => window !== undefined)
    .sort(byTightness)[0];
}

/** When a request refused with 429 may be made again: only an exhausted window tells, the others were not the reason. */
export function retryAtOf(rate: RateWindow | undefined, now: number): number {
  return rate?.remaining === 0 ? rate.resetAt : now + UNKNOWN_WINDOW_MS;
}

/** Of two exhausted windows both have to pass, so the later reset counts. */
function byTightness(one: RateWindow, other: RateWindow): number {
  return one.remaining - other.remaining || other.resetAt - one.resetAt;
}

function windowOf(headers: Headers, prefix: string, now: number): RateWindow | undefined {
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
  const told = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(told) ? now : told;
}

function integer(text: string | null): number | undefined {
  return text !== null && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
}
