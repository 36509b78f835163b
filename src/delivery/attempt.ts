import type { Recorded } from "../../events/catalog.ts";
import type { Lane } from "../../events/channel.ts";
import { isoTime } from "../clock.ts";
import type { Fact } from "../journal.ts";
import type { Channel, DispatchResult } from "../networks/network.ts";
import { subjectOf } from "./owed.ts";
import { ATTEMPTS_MAX, retryDelayMs } from "./retry.ts";

/** The events that tell what became of a dispatch. */
export type OutcomeFact = Extract<
  Fact,
  {
    type:
      | "ChannelDispatched"
      | "ChannelDispatchFailed"
      | "ChannelDispatchSkipped"
      | "ChannelDispatchInDoubt"
      | "ChannelDispatchAbandoned";
  }
>;

/** What became of one attempt; the lane's account is told when it is recorded. `final`: the dispatch is settled with it. */
export interface Outcome {
  readonly fact: OutcomeFact;
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
  /** ms since the epoch. */
  readonly now: number;
  /** In [0, 1). */
  readonly random: number;
}

/** Turns a network's answer into the event that records it (pure). */
export function decideOutcome(attempt: Attempt, result: DispatchResult): Outcome {
  const base = {
    event_id: subjectOf(attempt.event),
    owed: attempt.event.position,
    channel: attempt.channel,
    lane: attempt.lane,
    attempt: attempt.number,
    settled_below: 0,
  };
  const digest = attempt.digest === undefined ? {} : { digest: attempt.digest };
  const status = "status" in result && result.status !== undefined ? { status: result.status } : {};
  switch (result.outcome) {
    case "delivered": {
      const networkId = result.networkId === undefined ? {} : { network_id: result.networkId };
      const data = { ...base, ...status, ...networkId, ...digest, latency_ms: attempt.latencyMs };
      return { fact: { type: "ChannelDispatched", data }, final: true };
    }
    case "skipped":
      return { fact: { type: "ChannelDispatchSkipped", data: { ...base, reason: result.reason } }, final: true };
    case "in_doubt": {
      const data = { ...base, ...status, ...digest, detail: result.detail };
      return { fact: { type: "ChannelDispatchInDoubt", data }, final: true };
    }
    case "refused": {
      // It is not this click's fault: it waits until the channel works again.
      if (result.channel && attempt.lane === "clicks") {
        const data = { ...base, ...status, ...digest, detail: result.detail, retry_at: isoTime(attempt.now) };
        return { fact: { type: "ChannelDispatchFailed", data }, final: false };
      }
      const data = { ...base, ...status, ...digest, detail: result.detail, refused: true };
      return { fact: { type: "ChannelDispatchAbandoned", data }, final: true };
    }
    case "retryable": {
      if (attempt.number >= attemptsMax(attempt.event)) {
        const data = { ...base, ...status, ...digest, detail: result.detail, refused: false };
        return { fact: { type: "ChannelDispatchAbandoned", data }, final: true };
      }
      const retryAt = attempt.now + retryDelayMs(attempt.number, attempt.random, result.retryAfterMs);
      const data = { ...base, ...status, ...digest, detail: result.detail, retry_at: isoTime(retryAt) };
      return { fact: { type: "ChannelDispatchFailed", data }, final: false };
    }
  }
}

/** A test is one attempt: its result is the answer somebody waits for. */
function attemptsMax(event: Recorded): number {
  return event.type === "ChannelTestRequested" ? 1 : ATTEMPTS_MAX;
}
