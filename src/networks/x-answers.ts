import { Type } from "@sinclair/typebox";
import { readJson } from "./json-answer.ts";
import { SocialError, type SendDmResult, type StopReason } from "./network.ts";
import { excerpt } from "./plain-text.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";
import { ID } from "./x-bodies.ts";
import { rateOf, retryAtOf } from "./x-rate.ts";

const SENT = Type.Object({ data: Type.Object({ dm_event_id: ID }) });

/** What the answer to a send means. `now` in ms since the epoch, when the answer came. */
export function sendOutcome(answer: NetworkAnswer, now: number): SendDmResult {
  const rate = rateOf(answer.headers, now);
  if (answer.status >= 200 && answer.status < 300) {
    const messageId = readJson(SENT, answer.text)?.data.dm_event_id;
    if (messageId !== undefined) return { outcome: "sent", messageId, rate };
    return { outcome: "in_doubt", detail: `X answered ${answer.status} without the message's id`, rate };
  }
  const refusal = classifyXRefusal(answer);
  if (refusal.kind === "rate_limited")
    return { outcome: "rate_limited", retryAt: retryAtOf(answer.headers, now), rate };
  if (refusal.kind === "unauthorized") return { outcome: "unauthorized", rate };
  const { kind, detail } = refusal;
  if (kind === "stopped") return { outcome: kind, reason: refusal.reason, detail, rate };
  // A duplicate may be the very message whose first answer was lost: only the conversation shows it.
  const outcome = kind === "duplicate" || kind === "unavailable" ? "in_doubt" : kind;
  return { outcome, detail, rate };
}

/** The error that stands for a read's answer other than 200. */
export function readFailure(answer: NetworkAnswer, now: number): SocialError {
  const refusal = classifyXRefusal(answer);
  if (refusal.kind === "rate_limited") {
    return new SocialError("rate_limited", "X asks to wait", { retryAt: retryAtOf(answer.headers, now) });
  }
  if (refusal.kind === "unauthorized") return new SocialError("unauthorized", "X no longer accepts the token");
  const { kind, detail } = refusal;
  if (kind === "stopped") return new SocialError(kind, detail, { stop: refusal.reason });
  return new SocialError(kind === "unavailable" ? kind : "rejected", detail);
}

/** RFC 9457 as X writes it, `{code, message}`, and the list of codes of API v1.1: all three still occur. */
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

/** What a refusal of X means. `duplicate`: X says that the same text is there already. `unavailable`: nobody knows. */
type XRefusal =
  | { readonly kind: "unauthorized" }
  | { readonly kind: "rate_limited" }
  | { readonly kind: "stopped"; readonly reason: StopReason; readonly detail: string }
  | {
      readonly kind: "recipient_closed" | "not_permitted" | "duplicate" | "rejected" | "unavailable";
      readonly detail: string;
    };

interface Problem {
  readonly status: number;
  /** Last path segment of `type`: its host is x.com in some answers and twitter.com in others. */
  readonly slug: string;
  readonly title: string;
  readonly detail: string;
  readonly codes: readonly number[];
}

/** Could not authenticate; invalid or expired token; bad authentication data. */
const UNAUTHORIZED_CODES = [32, 89, 215];

/** Rate limit of API v1.1. */
const RATE_LIMITED_CODES = [88];

/** Not following you; cannot send messages to this user. */
const CLOSED_CODES = [150, 349];

/** Same status already posted. */
const DUPLICATE_CODES = [187];

/** Account suspended; looks automated; account locked. */
const RESTRICTED_CODES = [64, 226, 326];

/** The app's access level does not include the endpoint. */
const NOT_ENROLLED_CODES = [453];

/**
 * Reads an answer without success by the last segment of `type`, by `detail` and by the legacy codes.
 * https://docs.x.com/x-api/fundamentals/response-codes-and-errors
 */
export function classifyXRefusal(answer: NetworkAnswer): XRefusal {
  const problem = problemOf(answer);
  const { status, slug, title, codes } = problem;
  const detail = describe(problem);
  const coded = (known: readonly number[]): boolean => codes.some((code) => known.includes(code));

  // Whatever such a body says, the message may have gone through; 408 leaves open how much was understood.
  if (status < 400 || status === 408 || status >= 500) return { kind: "unavailable", detail };
  if (status === 401 || coded(UNAUTHORIZED_CODES)) return { kind: "unauthorized" };
  if (status === 402 || slug === "credits" || slug === "credits-depleted") {
    return { kind: "stopped", reason: "credits_depleted", detail };
  }
  if (slug === "usage-capped" || title === "UsageCapExceeded")
    return { kind: "stopped", reason: "usage_capped", detail };
  if (status === 429 || coded(RATE_LIMITED_CODES)) return { kind: "rate_limited" };
  if (coded(CLOSED_CODES)) return { kind: "recipient_closed", detail };
  if (coded(DUPLICATE_CODES)) return { kind: "duplicate", detail };
  if (coded(NOT_ENROLLED_CODES) || slug === "client-forbidden") {
    return { kind: "stopped", reason: "app_not_enrolled", detail };
  }
  if (coded(RESTRICTED_CODES)) return { kind: "stopped", reason: "sender_restricted", detail };
  if (status === 403) return classifyForbidden(problem, detail);
  return { kind: "rejected", detail };
}

/**
 * The 403s differ by their words alone. "This operation is not permitted." is one person's in production while others
 * in the same run are reached, and so may be words that nobody knows. Without any word it does not come from the API,
 * and to go on could cost the account.
 */
function classifyForbidden(problem: Problem, detail: string): XRefusal {
  const words = problem.detail.toLowerCase();
  if (/permission to dm|cannot send messages to this user|not following you/.test(words)) {
    return { kind: "recipient_closed", detail };
  }
  if (words.includes("duplicate")) return { kind: "duplicate", detail };
  if (problem.slug === "not-authorized-for-resource") return { kind: "rejected", detail };
  // A token of the app rather than of the user lacks the right to write as well.
  if (problem.slug === "unsupported-authentication" || words === "forbidden") {
    return { kind: "stopped", reason: "missing_scope", detail };
  }
  const isSilent = words === "" && problem.codes.length === 0;
  return isSilent ? { kind: "stopped", reason: "sender_restricted", detail } : { kind: "not_permitted", detail };
}

function problemOf({ status, text }: NetworkAnswer): Problem {
  const body = readJson(PROBLEM, text);
  const spoken = readJson(SPOKEN, text)?.errors[0]?.message;
  return {
    status,
    slug: body?.type?.split("/").at(-1) ?? "",
    title: body?.title ?? "",
    detail: body?.detail ?? body?.message ?? spoken ?? "",
    codes: (readJson(CODED, text)?.errors ?? [readJson(CODE, text)]).flatMap((coded) => coded?.code ?? []),
  };
}

function describe({ status, title, detail, codes }: Problem): string {
  const parts = [title === detail ? "" : title, detail, codes.length === 0 ? "" : `(code ${codes.join(", ")})`];
  return excerpt([`X answered ${status}`, ...parts].filter((part) => part !== "").join(" "));
}
