import type { CredentialCheck, DispatchResult } from "./network.ts";
import { type NetworkAnswer, NetworkFault } from "./safe-fetch.ts";
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { omitUndefined } from "../platform/omit-undefined.ts";

/**
 * Returns the parsed body of a network's answer if it fits `schema`, else undefined, because a network's answer is not
 * trusted.
 */
export function parseAnswer<T extends TSchema>(schema: T, text: string): Static<T> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Value.Check(schema, value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Minimum wait in ms after a rate limit, even if the network asks for none. */
const RETRY_AFTER_MIN_MS = 1000;

/**
 * Maximum wait in ms after a rate limit. No network documents windows longer than a day; one that asks for more is
 * broken, and must not silence a channel for good.
 */
export const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

/**
 * Converts seconds as a network gives them (`Retry-After`, Telegram's `retry_after`) to ms within the bounds of a wait.
 * Undefined if it is not a number, so that the caller's own back-off applies.
 */
export function retryAfterMs(seconds: string | number | null | undefined): number | undefined {
  const text = String(seconds).trim();
  return /^-?\d+(\.\d+)?$/.test(text) ? bounded(Math.ceil(Number(text) * 1000)) : undefined;
}

/**
 * Returns an answer's `Retry-After` in ms: seconds, or a date (RFC 9110, section 10.2.3). A date counts from the
 * answer's own `Date`, so that a clock that differs from the network's does not change the wait.
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

/**
 * Forms of a date in an HTTP header: the one that is sent today, and two from before 1995 that must still be read (RFC
 * 9110, section 5.6.7).
 */
const HTTP_DATES = [
  /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^\w{6,9}, \d\d-\w{3}-\d\d \d\d:\d\d:\d\d GMT$/,
  /^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/,
];

/** Parses the date in an HTTP header to ms since the epoch; undefined for anything else. */
function readHttpDate(text: string): number | undefined {
  if (!HTTP_DATES.some((form) => form.test(text))) return undefined;
  // The last form of HTTP_DATES names no time zone, and means UTC.
  const date = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
  return Number.isNaN(date) ? undefined : date;
}

/** Rules by which the answers of one network are read: the parts in which it differs from the other networks. */
export interface AnswerRules {
  /**
   * Returns details for the result of a delivered dispatch; undefined if the answer does not prove that the network
   * accepted it.
   */
  accepted(
    answer: NetworkAnswer,
  ): { readonly networkId?: string | undefined; readonly pauseMs?: number | undefined } | undefined;
  /** Describes a network's answer in a few words, without a credential or personal data. */
  describe(answer: NetworkAnswer): string;
  /**
   * True if the network would refuse every other dispatch of the channel too: a revoked credential, an archived
   * channel.
   */
  refusesChannel(answer: NetworkAnswer): boolean;
  /** True if the network's answer asks to slow down, so that nothing was delivered. Default: true for a 429. */
  isRateLimit?(answer: NetworkAnswer): boolean;
  /** True if the answer leaves open whether the dispatch arrived. Default: the status decides. */
  isUncertain?(answer: NetworkAnswer): boolean;
  /** Returns the wait before the next attempt, in ms, that a network's answer asks for. Default: its `Retry-After`. */
  retryAfterMs?(answer: NetworkAnswer): number | undefined;
}

/**
 * Returns the result of a dispatch by the network's answer. Only a rate limit and a plain refusal prove that nothing
 * was delivered. After any other answer the dispatch is repeated only if the network recognises a repeat
 * (`deduplicates`).
 */
export function classifyAnswer(answer: NetworkAnswer, rules: AnswerRules, deduplicates = false): DispatchResult {
  const { status } = answer;
  const accepted = rules.accepted(answer);
  if (accepted !== undefined) return { outcome: "delivered", status, ...omitUndefined(accepted) };
  const failed = { status, detail: rules.describe(answer) };
  const wait = rules.retryAfterMs === undefined ? parseRetryAfter(answer.headers) : rules.retryAfterMs(answer);
  const retryable = { outcome: "retryable", ...failed, ...omitUndefined({ retryAfterMs: wait }) } as const;
  if (rules.isRateLimit?.(answer) ?? status === 429) return retryable;
  // Unless the network has a rule, the status decides: everything but a refusal is uncertain. After a 408 it is unknown
  // how much of the request the server has processed.
  if (rules.isUncertain?.(answer) ?? (status < 400 || status === 408 || status >= 500)) {
    return deduplicates ? { ...retryable, mayHaveArrived: true } : { outcome: "in_doubt", ...failed };
  }
  return { outcome: "refused", ...failed, channel: rules.refusesChannel(answer) };
}

/** Waits for a dispatch's request and returns the result of the dispatch, whether an answer comes or not. */
export async function toDispatchResult(
  request: Promise<NetworkAnswer>,
  rules: AnswerRules,
  deduplicates = false,
): Promise<DispatchResult> {
  try {
    return classifyAnswer(await request, rules, deduplicates);
  } catch (fault) {
    const { kind, certainlyNotSent, message: detail } = expectNetworkFault(fault);
    if (kind === "forbidden") return { outcome: "refused", detail, channel: true };
    if (certainlyNotSent) return { outcome: "retryable", detail };
    return deduplicates ? { outcome: "retryable", detail, mayHaveArrived: true } : { outcome: "in_doubt", detail };
  }
}

/** Returns the result of checking a credential. A missing answer is a result too. */
export async function checked(check: () => Promise<CredentialCheck>): Promise<CredentialCheck> {
  try {
    return await check();
  } catch (fault) {
    return { ok: false, detail: expectNetworkFault(fault).message };
  }
}

/** Returns the fault if it is a network's. Any other fault is a defect in our code, and is thrown. */
function expectNetworkFault(fault: unknown): NetworkFault {
  if (fault instanceof NetworkFault) return fault;
  throw fault;
}
