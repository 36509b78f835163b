import { Type, type Static } from "@sinclair/typebox";
import { retryAfterMs, parseRetryAfter, parseAnswer } from "./classify-answer.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

/**
 * Version of Meta's Graph API that requests use, published 2026-11-04. Meta supports a version for two years:
 * https://developers.facebook.com/docs/graph-api/changelog
 */
export const API_VERSION = "v27.0";

const ERROR = Type.Object({
  code: Type.Integer(),
  error_subcode: Type.Optional(Type.Integer()),
  is_transient: Type.Optional(Type.Boolean()),
});

/**
 * Returns the error in an answer of the Graph API, with any status; undefined if it has none in the documented form.
 */
export function parseError({ text }: NetworkAnswer): Static<typeof ERROR> | undefined {
  return parseAnswer(Type.Object({ error: ERROR }), text)?.error;
}

/** Graph API error codes of faults that pass by themselves: an unknown error, and a service that is down. */
const PASSING_CODES: ReadonlySet<number> = new Set([1, 2]);

/**
 * Graph API error codes of rate limits for app, user, page, and calls to one object. Those of business use cases are
 * 80000 to 80014.
 */
const RATE_LIMIT_CODES: ReadonlySet<number> = new Set([4, 17, 32, 341, 613]);

/**
 * Graph API error codes of a missing capability or permission, an expired or revoked token, and a block for policy. 200
 * to 299 are permissions too.
 */
const CREDENTIAL_CODES: ReadonlySet<number> = new Set([3, 10, 102, 190, 368]);

/** Subcode that says, with the error code 100, that the object in the address does not exist, or not for this token. */
const UNKNOWN_OBJECT_SUBCODE = 33;

/** True if the Graph API asks for fewer calls, which it does with its own codes rather than with a 429. */
export function isRateLimit(answer: NetworkAnswer): boolean {
  const { code = 0 } = parseError(answer) ?? {};
  return answer.status === 429 || RATE_LIMIT_CODES.has(code) || (code >= 80_000 && code <= 80_014);
}

/** True if the Graph API's answer reports a temporary fault, by status or by error code. */
export function isPassing(answer: NetworkAnswer): boolean {
  const { code = 0, is_transient } = parseError(answer) ?? {};
  return answer.status >= 500 || answer.status === 408 || is_transient === true || PASSING_CODES.has(code);
}

/**
 * True if the Graph API refuses the token, its permissions, or the object in the address, rather than the content that
 * was sent.
 */
export function isCredentialFault(answer: NetworkAnswer): boolean {
  const error = parseError(answer);
  if (error === undefined) return [401, 403, 404].includes(answer.status);
  const { code, error_subcode } = error;
  return (
    CREDENTIAL_CODES.has(code) ||
    (code >= 200 && code <= 299) ||
    (code === 100 && error_subcode === UNKNOWN_OBJECT_SUBCODE)
  );
}

/** Describes an error of the Graph API by status and codes. Never repeats Meta's message, which can hold the token. */
export function describe(network: string, answer: NetworkAnswer): string {
  const error = parseError(answer);
  if (error === undefined) return `${network} answered ${answer.status} without a result`;
  const subcode = error.error_subcode === undefined ? "" : `/${error.error_subcode}`;
  return `${network} answered ${answer.status}, error ${error.code}${subcode}`;
}

/**
 * Pause in ms after a rate limit of the Graph API that names no duration: the windows are rolling hours, so a minute
 * frees some room.
 */
const RATE_LIMIT_PAUSE_MS = 60_000;

/** Returns the wait after a rate limit of the Graph API, in ms: the longest that the answer's headers ask for. */
export function rateLimitPauseMs(headers: Headers): number {
  const asked = [parseRetryAfter(headers), usagePauseMs(headers)].filter((ms) => ms !== undefined);
  return asked.length === 0 ? RATE_LIMIT_PAUSE_MS : Math.max(...asked);
}

const USAGE = Type.Object({
  call_count: Type.Optional(Type.Number()),
  total_time: Type.Optional(Type.Number()),
  total_cputime: Type.Optional(Type.Number()),
  estimated_time_to_regain_access: Type.Optional(Type.Number()),
});

/** Schema of Meta's report of our use: by the id of the business, with one entry for each kind of call. */
const BUSINESS_USAGE = Type.Record(Type.String(), Type.Array(USAGE));

/**
 * Share of Meta's allowance, in per cent, from which on requests pause: at 100 Meta refuses everything, for up to an
 * hour.
 */
const USAGE_PERCENT_MAX = 95;

/**
 * Returns the pause in ms that Meta's usage headers suggest, if any. Usage is in whole per cent of the hourly limit, the
 * time to regain access in minutes.
 * https://developers.facebook.com/docs/graph-api/overview/rate-limiting
 */
export function usagePauseMs(headers: Headers): number | undefined {
  const app = parseAnswer(USAGE, headers.get("x-app-usage") ?? "");
  const businesses = parseAnswer(BUSINESS_USAGE, headers.get("x-business-use-case-usage") ?? "") ?? {};
  const all = [...(app === undefined ? [] : [app]), ...Object.values(businesses).flat()];
  const minutes = Math.max(0, ...all.map((usage) => usage.estimated_time_to_regain_access ?? 0));
  if (minutes > 0) return retryAfterMs(minutes * 60);
  const percents = all.flatMap(({ call_count = 0, total_time = 0, total_cputime = 0 }) => [
    call_count,
    total_time,
    total_cputime,
  ]);
  return Math.max(0, ...percents) >= USAGE_PERCENT_MAX ? RATE_LIMIT_PAUSE_MS : undefined;
}
