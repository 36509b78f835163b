import type { CredentialCheck, DispatchResult } from "./network.ts";
import { type NetworkAnswer, NetworkFault } from "./safe-fetch.ts";
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { omitUndefined } from "../platform/omit-undefined.ts";

/** The body as `schema` describes it, undefined for anything else: what a network answers is not trusted. */
export function parseAnswer<T extends TSchema>(schema: T, text: string): Static<T> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Value.Check(schema, value) ? value : undefined;
  } catch {
    return undefined;
  }
}

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

/** What the answers of one network mean: all in which it differs from the others. */
export interface AnswerRules {
  /** What of a {@link DispatchResult} a delivered dispatch has; undefined: the answer does not prove that it was taken. */
  accepted(
    answer: NetworkAnswer,
  ): { readonly networkId?: string | undefined; readonly pauseMs?: number | undefined } | undefined;
  /** The answer in a few words, which hold neither a credential nor personal data. */
  describe(answer: NetworkAnswer): string;
  /** Whether a refusal would meet every other dispatch too: a revoked credential, an archived channel. */
  refusesChannel(answer: NetworkAnswer): boolean;
  /** Whether the network asks to slow down, so that nothing was delivered. Absent: it does so by a 429. */
  isRateLimit?(answer: NetworkAnswer): boolean;
  /** Whether the dispatch may have arrived. Absent: the status decides. */
  isUncertain?(answer: NetworkAnswer): boolean;
  /** How long to wait before the next attempt. Absent: what `Retry-After` asks for. */
  retryAfterMs?(answer: NetworkAnswer): number | undefined;
}

/**
 * What an answer means for a dispatch. Only a rate limit and a plain refusal prove that nothing was delivered; the rest
 * may be repeated only where the network recognises a repeat (`deduplicates`).
 */
export function classifyAnswer(answer: NetworkAnswer, rules: AnswerRules, deduplicates = false): DispatchResult {
  const { status } = answer;
  const accepted = rules.accepted(answer);
  if (accepted !== undefined) return { outcome: "delivered", status, ...omitUndefined(accepted) };
  const failed = { status, detail: rules.describe(answer) };
  const wait = rules.retryAfterMs === undefined ? parseRetryAfter(answer.headers) : rules.retryAfterMs(answer);
  const retryable = { outcome: "retryable", ...failed, ...omitUndefined({ retryAfterMs: wait }) } as const;
  if (rules.isRateLimit?.(answer) ?? status === 429) return retryable;
  // By its status everything but a refusal; 408 leaves open how much the server understood.
  if (rules.isUncertain?.(answer) ?? (status < 400 || status === 408 || status >= 500)) {
    return deduplicates ? { ...retryable, mayHaveArrived: true } : { outcome: "in_doubt", ...failed };
  }
  return { outcome: "refused", ...failed, channel: rules.refusesChannel(answer) };
}

/** What one request means for a dispatch, whether an answer comes or not. */
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

/** What a check finds; where no answer comes, that is the finding. */
export async function checked(check: () => Promise<CredentialCheck>): Promise<CredentialCheck> {
  try {
    return await check();
  } catch (fault) {
    return { ok: false, detail: expectNetworkFault(fault).message };
  }
}

/** Anything else is a defect of ours and thrown on. */
function expectNetworkFault(fault: unknown): NetworkFault {
  if (fault instanceof NetworkFault) return fault;
  throw fault;
}
