import type { Lane } from "../../events/channel-and-lane-names.ts";
import type { DispatchMode } from "../../events/delivery.ts";
import type { OutcomeType, RequestOf } from "../../events/dispatches-requested-by-events.ts";
import { isoTime, backoffMs } from "../platform/clock-ids-and-timers.ts";
import type { DispatchResult } from "../networks/network.ts";
import { RETRY_AFTER_MAX_MS } from "../networks/classify-answer.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/**
 * Outcome of one attempt in the form of its event, without the positions of the dispatches that the request carried.
 */
export type AttemptOutcome = {
  readonly [T in OutcomeType]: { readonly type: T; readonly request: Omit<RequestOf<T>, "sources"> };
}[OutcomeType];

export interface Attempt {
  readonly lane: Lane;
  /** True if the attempt is a test of the channel. */
  readonly isTest: boolean;
  /** Number of the attempt; the first is 1. */
  readonly number: number;
  readonly mode: DispatchMode;
  readonly digest?: string | undefined;
  readonly latencyMs: number;
  /**
   * Time at which the first earlier attempt that may have reached the network ended, in ms since the epoch; undefined
   * if none may have.
   */
  readonly uncertainSince?: number | undefined;
  /** Time now, in ms since the epoch. */
  readonly now: number;
  /** Random number in [0, 1). */
  readonly random: number;
}

/** Turns a network's answer into the outcome that the log records (pure). */
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
      // The network refuses the channel, and not this click or event, so the dispatch waits until the channel works
      // again.
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

/**
 * Returns the field of a dead letter that says since when an attempt may have arrived, for a later retry. Empty if none
 * may have.
 */
export function uncertainSinceField(since: number | undefined): { readonly doubtful_since?: string } {
  return since === undefined ? {} : { doubtful_since: isoTime(since) };
}

function decideRetry(
  { isTest, number, now, random, uncertainSince }: Attempt,
  base: Omit<RequestOf<"DispatchFailed">, "sources" | "retry_at" | "may_have_arrived">,
  { mayHaveArrived, retryAfterMs }: Extract<DispatchResult, { outcome: "retryable" }>,
): AttemptOutcome {
  // The caller of a test waits for the result of its one attempt. A test is never repeated, so one that may have
  // arrived stays in doubt.
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
 * Maximum number of attempts for one dispatch, including the first. After the last failure the dispatch is a dead
 * letter. An answer that asks for a wait counts too.
 */
export const DISPATCH_ATTEMPTS_MAX = 8;

/**
 * Base of the backoff between attempts, in ms. The seven waits between eight attempts take at most about an hour, and
 * half of that on average, unless the network asks for longer ones.
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
