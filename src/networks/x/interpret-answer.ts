import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { parseAnswer, parseRetryAfter } from "../classify-answer.ts";
import { SocialError, type SendDmResult, type StopReason, type RateWindow } from "../network.ts";
import { excerpt } from "../sanitize-and-truncate-text.ts";
import type { NetworkAnswer } from "../safe-fetch.ts";
import { Value } from "@sinclair/typebox/value";

export const ID = Type.String({ pattern: "^[0-9]{1,19}$" });
export const USERNAME = Type.String({ pattern: "^[A-Za-z0-9_]{1,15}$" });

/** True if X could have made this id. Ids are put into paths, so nothing else may pass. */
export const isXId = (text: string): boolean => Value.Check(ID, text);

export const isXUsername = (text: string): boolean => Value.Check(USERNAME, text);

export const META = Type.Object({
  result_count: Type.Optional(Type.Integer()),
  /** Cursor of the next page. X documents no maximum length; the size of the whole answer is limited. */
  next_token: Type.Optional(Type.String()),
});

/** Returns the cursor of the next page as the member `next`; no member on the last page. */
export function parseNext(meta: Static<typeof META> | undefined): { readonly next?: string } {
  return meta?.next_token === undefined || meta.next_token === "" ? {} : { next: meta.next_token };
}

export function required<T extends TSchema>(schema: T, text: string): Static<T> {
  const body = parseAnswer(schema, text);
  if (body === undefined) throw unreadable();
  return body;
}

export function unreadable(): SocialError {
  return new SocialError("unavailable", "X answered 200 with a body that cannot be read");
}

const SENT = Type.Object({ data: Type.Object({ dm_event_id: ID }) });

/** Returns the outcome of sending a message by X's answer. `now` is when the answer came, in ms since the epoch. */
export function sendOutcome(answer: NetworkAnswer, now: number): SendDmResult {
  const rate = parseRate(answer.headers, now);
  if (answer.status >= 200 && answer.status < 300) {
    const messageId = parseAnswer(SENT, answer.text)?.data.dm_event_id;
    if (messageId !== undefined) return { outcome: "sent", messageId, rate };
    return { outcome: "in_doubt", detail: `X answered ${answer.status} without the message's id`, rate };
  }
  const refusal = classifyXRefusal(answer);
  if (refusal.kind === "rate_limited")
    return { outcome: "rate_limited", retryAt: calculateRetryAt(answer.headers, now), rate };
  if (refusal.kind === "unauthorized") return { outcome: "unauthorized", rate };
  const { kind, detail } = refusal;
  if (kind === "stopped") return { outcome: kind, reason: refusal.reason, detail, rate };
  // X refuses a message as a duplicate also if its own first answer to that message was lost. Only the conversation
  // shows if it was sent.
  const outcome = kind === "duplicate" || kind === "unavailable" ? "in_doubt" : kind;
  return { outcome, detail, rate };
}

/** Returns the error for X's answer to a read with a status other than 200. */
export function readFailure(answer: NetworkAnswer, now: number): SocialError {
  const refusal = classifyXRefusal(answer);
  if (refusal.kind === "rate_limited") {
    return new SocialError("rate_limited", "X asks to wait", { retryAt: calculateRetryAt(answer.headers, now) });
  }
  if (refusal.kind === "unauthorized") return new SocialError("unauthorized", "X no longer accepts the token");
  const { kind, detail } = refusal;
  if (kind === "stopped") return new SocialError(kind, detail, { stop: refusal.reason });
  return new SocialError(kind === "unavailable" ? kind : "rejected", detail);
}

/**
 * Schema of X's errors: RFC 9457 as X writes it, `{code, message}`, and the list of codes of API v1.1; all three still
 * occur.
 */
const PROBLEM = Type.Object({
  type: Type.Optional(Type.String()),
  title: Type.Optional(Type.String()),
  detail: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
  errors: Type.Optional(Type.Array(Type.Unknown())),
});

const CODE = Type.Object({ code: Type.Integer() });
const CODED = Type.Object({ errors: Type.Array(CODE) });
const SPOKEN = Type.Object({ errors: Type.Array(Type.Object({ message: Type.String() })) });

/** The meaning of X's refusal. `duplicate`: X has the same text already. `unavailable`: the outcome is unknown. */
type Meaning =
  | { readonly kind: "stopped"; readonly reason: StopReason }
  | {
      readonly kind:
        | "unauthorized"
        | "rate_limited"
        | "recipient_closed"
        | "not_permitted"
        | "duplicate"
        | "rejected"
        | "unavailable";
    };

interface Problem {
  readonly status: number;
  /** Last path segment of a problem's `type`, whose host is x.com in some of X's answers and twitter.com in others. */
  readonly slug: string;
  readonly title: string;
  readonly detail: string;
  readonly codes: readonly number[];
}

/** Signs by which a meaning of X's refusal is recognised. Any of them is enough. */
interface Signs {
  readonly status?: number;
  readonly slugs?: readonly string[];
  readonly title?: string;
  /** Error codes of X's API v1.1. */
  readonly codes?: readonly number[];
  readonly words?: RegExp;
}

/**
 * Meanings of X's refusals with their signs; the first that fits counts.
 * https://docs.x.com/x-api/fundamentals/response-codes-and-errors
 */
const MEANINGS: readonly (Meaning & Signs)[] = [
  // X's words for these codes: could not authenticate; invalid or expired token; bad authentication data.
  { kind: "unauthorized", status: 401, codes: [32, 89, 215] },
  { kind: "stopped", reason: "credits_depleted", status: 402, slugs: ["credits", "credits-depleted"] },
  { kind: "stopped", reason: "usage_capped", slugs: ["usage-capped"], title: "UsageCapExceeded" },
  { kind: "rate_limited", status: 429, codes: [88] },
  // X's words for these codes: not following you; cannot send messages to this user; takes requests of verified
  // accounts only.
  { kind: "recipient_closed", codes: [150, 349, 476] },
  // X's words for this code: same status already posted.
  { kind: "duplicate", codes: [187] },
  // X's words for the slug and for code 453: the app's access level does not include the endpoint. For code 261: the
  // app has no write access. For code 416: the app is suspended.
  { kind: "stopped", reason: "app_not_enrolled", slugs: ["client-forbidden"], codes: [261, 416, 453] },
  // X's words for these codes: no access to direct messages; credentials without access to the resource.
  { kind: "stopped", reason: "missing_scope", codes: [93, 220] },
  // X's words for these codes: account suspended; looks automated; account locked.
  { kind: "stopped", reason: "sender_restricted", codes: [64, 226, 326] },
];

/** Meanings of X's 403s that {@link MEANINGS} does not cover, which differ mostly by their words. */
const FORBIDDEN: readonly (Meaning & Signs)[] = [
  { kind: "recipient_closed", words: /permission to dm|cannot send messages to this user|not following you/i },
  { kind: "duplicate", words: /duplicate/i },
  { kind: "rejected", slugs: ["not-authorized-for-resource"] },
  // X uses this slug for a token of the app where one of the user is needed, and this word for a token without the
  // right to write.
  { kind: "stopped", reason: "missing_scope", slugs: ["unsupported-authentication"], words: /^forbidden$/i },
];

export function classifyXRefusal(answer: NetworkAnswer): Meaning & { readonly detail: string } {
  const problem = parseProblem(answer);
  return { ...classifyProblem(problem), detail: describe(problem) };
}

function classifyProblem(problem: Problem): Meaning {
  const { status, detail, codes } = problem;
  // With these statuses the message may have been sent, regardless of the body. After a 408 it is unknown how much of
  // the request X has processed.
  if (status < 400 || status === 408 || status >= 500) return { kind: "unavailable" };
  const isShown = (signs: Signs): boolean => fits(problem, signs);
  const known = MEANINGS.find(isShown) ?? (status === 403 ? FORBIDDEN.find(isShown) : { kind: "rejected" as const });
  if (known !== undefined) return known;
  // An undocumented code counts as a refusal by the recipient, not of the account. Some bodies repeat the status as
  // their code.
  if (codes.some((code) => code !== status)) return { kind: "recipient_closed" };
  // In production, "This operation is not permitted." concerned one recipient while others in the same run were
  // reached; unknown words may, too. A refusal without words does not come from the API, and continuing could cost the
  // account.
  const isSilent = detail === "" && codes.length === 0;
  return isSilent ? { kind: "stopped", reason: "sender_restricted" } : { kind: "not_permitted" };
}

function fits(problem: Problem, { status, slugs = [], title, codes = [], words }: Signs): boolean {
  if (problem.status === status || slugs.includes(problem.slug) || problem.title === title) return true;
  return problem.codes.some((code) => codes.includes(code)) || words?.test(problem.detail) === true;
}

function parseProblem({ status, text }: NetworkAnswer): Problem {
  const body = parseAnswer(PROBLEM, text);
  const spoken = parseAnswer(SPOKEN, text)?.errors[0]?.message;
  return {
    status,
    slug: body?.type?.split("/").at(-1) ?? "",
    title: body?.title ?? "",
    detail: body?.detail ?? body?.message ?? spoken ?? "",
    codes: (parseAnswer(CODED, text)?.errors ?? [parseAnswer(CODE, text)]).flatMap((coded) => coded?.code ?? []),
  };
}

function describe({ status, title, detail, codes }: Problem): string {
  const parts = [title === detail ? "" : title, detail, codes.length === 0 ? "" : `(code ${codes.join(", ")})`];
  return excerpt([`X answered ${status}`, ...parts].filter((part) => part !== "").join(" "));
}

/** Beginning of the names of the response headers in which X states the endpoint's rate limit. */
const ENDPOINT_PREFIX = "x-rate-limit";
const DAY_PREFIXES = ["x-user-limit-24hour", "x-app-limit-24hour"];

/** Minimum time in ms until a window resets, so that a reset that has just passed causes no busy loop. */
const RESET_IN_MS_MIN = 1000;

/** Maximum time in ms until a window of X resets. A header that gives more is broken. */
const RESET_IN_MS_MAX = 24 * 60 * 60_000;

/** Length of X's usual window, for a 429 that does not say until when. */
const UNKNOWN_WINDOW_MS = 15 * 60_000;

/**
 * Returns X's rate-limit window to respect: of the exhausted ones the one that resets last, else the endpoint's, else
 * the tighter one of the day. Undefined if no window is complete. `now` is in ms since the epoch.
 */
export function parseRate(headers: Headers, now: number): RateWindow | undefined {
  const endpoint = parseWindow(headers, ENDPOINT_PREFIX, now);
  const days = DAY_PREFIXES.map((prefix) => parseWindow(headers, prefix, now)).filter((window) => window !== undefined);
  const all = endpoint === undefined ? days : [endpoint, ...days];
  const exhausted = all.filter(({ remaining }) => remaining === 0).sort((one, other) => other.resetAt - one.resetAt)[0];
  // The endpoint's window comes first, so that the day's messages are not spread over the day while the endpoint
  // accepts more.
  return exhausted ?? endpoint ?? days.sort((one, other) => one.remaining - other.remaining)[0];
}

/**
 * Returns the time at which a request that X refused with 429 may be repeated. If a window is used up: after its reset
 * and `Retry-After`. Else: after `Retry-After` or, without it, the window's reset, 15 minutes at most.
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
  // Time at which X answered, by X's clock or, if the answer has no `Date`, by ours. It is cut to the second, so the
  // wait is a little too long.
  const answeredAt = Date.parse(headers.get("date") ?? "");
  const resetIn = resetSeconds * 1000 - (Number.isNaN(answeredAt) ? now : answeredAt);
  const bounded = Math.min(RESET_IN_MS_MAX, Math.max(RESET_IN_MS_MIN, resetIn));
  return { limit: Math.max(0, limit), remaining: Math.max(0, remaining), resetAt: now + bounded };
}

function integer(text: string | null): number | undefined {
  return text !== null && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
}
