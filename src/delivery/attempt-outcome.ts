import type { Lane } from "../../events/channel.ts";
import type { DispatchMode } from "../../events/delivery.ts";
import type { OutcomeType, RequestOf } from "../../events/dispatches.ts";
import { isoTime, backoffMs } from "../platform/clock.ts";
import type { DispatchResult } from "../networks/network.ts";
import { RETRY_AFTER_MAX_MS } from "../networks/classify-answer.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/** The outcome of one attempt, as its event records it for all dispatches of the request. */
export type AttemptOutcome = {
  readonly [T in OutcomeType]: { readonly type: T; readonly request: Omit<RequestOf<T>, "sources"> };
}[OutcomeType];

export interface Attempt {
  readonly lane: Lane;
  /** True for a test of the channel. */
  readonly isTest: boolean;
  /** 1-based. */
  readonly number: number;
  readonly mode: DispatchMode;
  readonly digest?: string | undefined;
  readonly latencyMs: number;
  /** When the first earlier attempt that may have arrived ended, in ms since the epoch. */
  readonly uncertainSince?: number | undefined;
  /** ms since the epoch. */
  readonly now: number;
  /** In [0, 1). */
  readonly random: number;
}

/** Turns a network's answer into the outcome that is recorded (pure). */
export function decideAttemptOutcome(attempt: Attempt, result: DispatchResult): AttemptOutcome {
  const { number, mode, digest, latencyMs, lane, now } = attempt;
  if (result.outcome === "skipped") {
    return { type: "DispatchSkipped", request: { attempt: number, reason: result.reason } };
  }
  const answer = result.status === undefined ? {} : { status: result.status, latency_ms: latencyMs };
  const base = { attempt: number, mode, ...omitUndefined({ digest }), ...answer };
  switch (result.outcome) {
    case "delivered": {
      const networkId = omitUndefined({ network_id: result.networkId });
      return { type: "DispatchSucceeded", request: { ...base, ...networkId, latency_ms: latencyMs } };
    }
    case "in_doubt":
      return { type: "DispatchInDoubt", request: { ...base, detail: result.detail } };
    case "refused": {
      const { detail } = result;
      // The network refuses the channel, not this click or event, which waits until the channel works again.
      if (result.channel && lane !== "direct") {
        return { type: "DispatchFailed", request: { ...base, detail, retry_at: isoTime(now) } };
      }
      const request = { ...base, detail, refused: true, ...uncertainSinceField(attempt.uncertainSince) };
      return { type: "DispatchAbandoned", request };
    }
    case "retryable":
      return decideRetry(attempt, { ...base, detail: result.detail }, result);
  }
}

/** Returns the field of a dead letter that tells a later retry since when an attempt may have arrived. */
export function uncertainSinceField(since: number | undefined): { readonly doubtful_since?: string } {
  return since === undefined ? {} : { doubtful_since: isoTime(since) };
}

function decideRetry(
  { isTest, number, now, random, uncertainSince }: Attempt,
  base: Omit<RequestOf<"DispatchFailed">, "sources" | "retry_at" | "may_have_arrived">,
  { mayHaveArrived, retryAfterMs }: Extract<DispatchResult, { outcome: "retryable" }>,
): AttemptOutcome {
  // A test is one attempt, and its caller waits for that result. It is never repeated, so it stays in doubt.
  if (isTest && mayHaveArrived === true) return { type: "DispatchInDoubt", request: base };
  if (isTest || number >= DISPATCH_ATTEMPTS_MAX) {
    const since = uncertainSince ?? (mayHaveArrived === true ? now : undefined);
    return { type: "DispatchAbandoned", request: { ...base, refused: false, ...uncertainSinceField(since) } };
  }
  const retry_at = isoTime(now + retryDelayMs(number, random, retryAfterMs));
  const mayHave = mayHaveArrived === true ? { may_have_arrived: true as const } : {};
  return { type: "DispatchFailed", request: { ...base, retry_at, ...mayHave } };
}

/**
 * Attempts for one dispatch, including the first, before it is a dead letter. An answer that asks for a wait counts
 * too: if the network asks for two hours each time, the last attempt comes after 14 hours.
 */
export const DISPATCH_ATTEMPTS_MAX = 8;

/**
 * The seven waits between eight attempts, unless the network asks for longer ones, are at most 2 s, 6 s, 20 s, 1 min,
 * 3.5 min, 11 min and 36 min: about an hour in total, and half of that on average.
 */
const BASE_MS = 2_000;
const FACTOR = 3.2;

/**
 * Returns how long to wait after failed attempt number `attempt` (1-based), in ms: exponential backoff with full
 * jitter, but never less than the network asked for. `random` is in [0, 1).
 */
export function retryDelayMs(attempt: number, random: number, retryAfterMs: number | undefined): number {
  const ownMs = backoffMs(Math.min(attempt, DISPATCH_ATTEMPTS_MAX - 1), random, { baseMs: BASE_MS, factor: FACTOR });
  return Math.max(ownMs, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}
