import type { Recorded } from "../../../events/catalog.ts";
import type { Suspended } from "../../../projections/deliveries.ts";
import { ATTEMPTS_MAX } from "../../delivery/attempt.ts";
import { quoted } from "../../history/words/phrases.ts";

/** The state of a dispatch to one channel. */
export type Fate =
  | { readonly status: "waiting"; readonly attempts: number; readonly retry_at: string | undefined }
  | { readonly status: "delivered" | "skipped" | "in_doubt" | "dead" | "discarded" };

const UNTRIED: Fate = { status: "waiting", attempts: 0, retry_at: undefined };

/**
 * The status of one dispatch to one channel (pure). `events`: its outcomes, narrowed to it, and the decisions on it,
 * in the order of the log. Of final outcomes recorded twice the first counts, as everywhere.
 */
export function fateOf(events: readonly Recorded[]): Fate {
  return events.reduce(next, UNTRIED);
}

function next(fate: Fate, { type, data }: Recorded): Fate {
  if (type === "DispatchRetryRequested") return UNTRIED;
  if (type === "DispatchDiscarded") return { status: "discarded" };
  if (fate.status !== "waiting") return fate;
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
      return fate;
  }
}

/** Why the channel sends nothing now; null: it sends. */
export type Hindrance = Suspended | "not configured" | null;

/** `id`: of the event whose dispatch it is. */
export function fateInWords(fate: Fate, hindrance: Hindrance, id: string): string {
  switch (fate.status) {
    case "waiting":
      return waitingInWords(fate, hindrance);
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

function waitingInWords({ attempts, retry_at }: Extract<Fate, { status: "waiting" }>, hindrance: Hindrance): string {
  if (hindrance === "not configured") return "waits: the channel is not configured here";
  if (hindrance !== null)
    return `waits: the channel is suspended since ${hindrance.since}, ${quoted(hindrance.detail)}`;
  if (retry_at === undefined) return "waits for its first attempt";
  return `waits: attempt ${attempts + 1} of ${ATTEMPTS_MAX} is due at ${retry_at}`;
}
