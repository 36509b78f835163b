import type { Recorded } from "../../../events/catalog.ts";
import type { Suspended } from "../../../projections/deliveries.ts";
import { DISPATCH_ATTEMPTS_MAX } from "../../delivery/attempt.ts";
import { quoteText } from "../../history/words/phrases.ts";

type Waiting = { readonly status: "waiting"; readonly attempts: number; readonly retry_at: string | undefined };

/** The state of a dispatch to one channel. */
export type DispatchStatus = Waiting | { readonly status: "delivered" | "skipped" | "in_doubt" | "dead" | "discarded" };

const UNTRIED: DispatchStatus = { status: "waiting", attempts: 0, retry_at: undefined };

/**
 * The status of one dispatch to one channel (pure). `events`: its outcomes, narrowed to it, and the decisions on it,
 * in the order of the log. Of final outcomes recorded twice the first counts, as everywhere.
 */
export function toDispatchStatus(events: readonly Recorded[]): DispatchStatus {
  return events.reduce(next, UNTRIED);
}

function next(current: DispatchStatus, { type, data }: Recorded): DispatchStatus {
  if (type === "DispatchRetryRequested") return UNTRIED;
  if (type === "DispatchDiscarded") return { status: "discarded" };
  if (current.status !== "waiting") return current;
  switch (type) {
    case "DispatchFailed":
      return { status: "waiting", attempts: data.requests[0]?.attempt ?? 0, retry_at: data.requests[0]?.retry_at };
    case "DispatchSucceeded":
      return { status: "delivered" };
    case "DispatchSkipped":
      return { status: "skipped" };
    case "DispatchInDoubt":
      return { status: "in_doubt" };
    case "DispatchAbandoned":
      return { status: "dead" };
    default:
      return current;
  }
}

/** Why the channel sends nothing now; null: it sends. */
export type BlockReason = Suspended | "not configured" | null;

/** `id`: of the event whose dispatch it is. */
export function describeDispatch(current: DispatchStatus, blocked: BlockReason, id: string): string {
  switch (current.status) {
    case "waiting":
      return describeWait(current, blocked);
    case "delivered":
      return "delivered";
    case "skipped":
      return "not sent, and never will be";
    case "in_doubt":
      return "in doubt; not retried automatically";
    case "dead":
      return `a dead letter: send it with reachlog deliveries retry ${id}, or drop it with discard`;
    case "discarded":
      return "discarded; never sent again";
  }
}

function describeWait({ attempts, retry_at }: Waiting, blocked: BlockReason): string {
  if (blocked === "not configured") return "waits: the channel is not configured here";
  if (blocked !== null) return `waits: the channel is suspended since ${blocked.since}, ${quoteText(blocked.detail)}`;
  if (retry_at === undefined) return "waits for its first attempt";
  return `waits: attempt ${attempts + 1} of ${DISPATCH_ATTEMPTS_MAX} is due at ${retry_at}`;
}
