import type { DataOf, Recorded } from "../../events/catalog.ts";
import type { Lane } from "../../events/channel.ts";
import { isoTime } from "../platform/clock.ts";
import type { NewEvent } from "../log/event-log.ts";
import type { Channel, DispatchResult } from "../networks/network.ts";
import { subjectOf } from "./request-of.ts";
import { ATTEMPTS_MAX, retryDelayMs } from "./retry.ts";

/** The events that tell what became of a dispatch. */
export type OutcomeEvent = Extract<
  NewEvent,
  {
    type: "DispatchSucceeded" | "DispatchFailed" | "DispatchSkipped" | "DispatchInDoubt" | "DispatchAbandoned";
  }
>;

/**
 * How dispatches travel: one alone, several in one request of which the network answers each, or all in one message.
 */
export type DispatchMode = "single" | "batch" | "digest";

/** What became of one attempt; the lane's account is told when it is recorded. `final`: the dispatch is settled with it. */
export interface Outcome {
  readonly newEvent: OutcomeEvent;
  readonly final: boolean;
}

/** The attempt an outcome is decided for. */
export interface Attempt {
  readonly channel: Channel["name"];
  readonly lane: Lane;
  readonly event: Recorded;
  /** 1-based. */
  readonly number: number;
  readonly latencyMs: number;
  /** Of a digest that told it together with others. */
  readonly digest?: string;
  /** When the first attempt before this one that may have arrived was over, ms since the epoch. */
  readonly doubtfulSince?: number | undefined;
  /** ms since the epoch. */
  readonly now: number;
  /** In [0, 1). */
  readonly random: number;
}

/** Turns a network's answer into the event that records it (pure). */
export function decideOutcome(attempt: Attempt, result: DispatchResult): Outcome {
  const about = {
    event_id: subjectOf(attempt.event),
    owed: attempt.event.position,
    channel: attempt.channel,
    lane: attempt.lane,
    attempt: attempt.number,
    low_watermark: 0,
  };
  if (result.outcome === "skipped") {
    return { newEvent: { type: "DispatchSkipped", data: { ...about, reason: result.reason } }, final: true };
  }
  const answer = result.status === undefined ? {} : { status: result.status, latency_ms: attempt.latencyMs };
  const digest = attempt.digest === undefined ? {} : { digest: attempt.digest };
  const base = { ...about, ...answer, ...digest };
  switch (result.outcome) {
    case "delivered": {
      const networkId = result.networkId === undefined ? {} : { network_id: result.networkId };
      const data = { ...base, ...networkId, latency_ms: attempt.latencyMs };
      return { newEvent: { type: "DispatchSucceeded", data }, final: true };
    }
    case "in_doubt":
      return { newEvent: { type: "DispatchInDoubt", data: { ...base, detail: result.detail } }, final: true };
    case "refused": {
      // It is not this click's fault: it waits until the channel works again.
      if (result.channel && attempt.lane === "clicks") {
        const data = { ...base, detail: result.detail, retry_at: isoTime(attempt.now) };
        return { newEvent: { type: "DispatchFailed", data }, final: false };
      }
      const data = { ...base, detail: result.detail, refused: true, ...doubtOf(attempt.doubtfulSince) };
      return { newEvent: { type: "DispatchAbandoned", data }, final: true };
    }
    case "retryable":
      return decideRetry(attempt, { ...base, detail: result.detail }, result);
  }
}

/** What is told of a dead letter, for whoever wants it sent again. */
export function doubtOf(since: number | undefined): { readonly doubtful_since?: string } {
  return since === undefined ? {} : { doubtful_since: isoTime(since) };
}

function decideRetry(
  { event, number, now, random, doubtfulSince }: Attempt,
  base: Omit<DataOf<"DispatchFailed">, "retry_at" | "may_have_arrived">,
  result: Extract<DispatchResult, { outcome: "retryable" }>,
): Outcome {
  // A test is one attempt: its result is the answer somebody waits for. Nobody repeats it, so nobody finds out.
  const isTest = event.type === "ChannelTestRequested";
  if (isTest && result.mayHaveArrived === true) {
    return { newEvent: { type: "DispatchInDoubt", data: base }, final: true };
  }
  if (isTest || number >= ATTEMPTS_MAX) {
    const since = doubtfulSince ?? (result.mayHaveArrived === true ? now : undefined);
    const data = { ...base, refused: false, ...doubtOf(since) };
    return { newEvent: { type: "DispatchAbandoned", data }, final: true };
  }
  const retryAt = isoTime(now + retryDelayMs(number, random, result.retryAfterMs));
  const mayHave = result.mayHaveArrived === true ? { may_have_arrived: true as const } : {};
  return { newEvent: { type: "DispatchFailed", data: { ...base, retry_at: retryAt, ...mayHave } }, final: false };
}
