import { LeaseLost, type EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { RunEnd } from "../../events/outreach.ts";
import { SocialError } from "../networks/network.ts";
import type { RunContext } from "./context.ts";

/** Ends that an operator has to do something about. */
const CALLS_FOR_ACTION: ReadonlySet<RunEnd> = new Set([
  "credits_depleted",
  "usage_capped",
  "sender_restricted",
  "missing_scope",
  "app_not_enrolled",
  "request_rejected",
  "log_restored",
  "clock_skewed",
]);

/** A dead grant is announced where it is found; one that was just renewed and is refused all the same is not. */
export function callsForAction({ projector }: RunContext, reason: RunEnd): boolean {
  return CALLS_FOR_ACTION.has(reason) || (reason === "not_authorized" && projector.state("account").authorized);
}

/** Why a run has to stop between two messages; undefined: it goes on. The signal's reason says it, or that the lease is lost. */
export function stopReason({ signal }: Pick<RunContext, "signal">): RunEnd | undefined {
  if (!signal.aborted) return undefined;
  return signal.reason instanceof LeaseLost ? "fault" : (signal.reason as RunEnd);
}

/** Why a run ends when the network fails to answer a question; any other fault is thrown on. */
export function toRunEnd(run: RunContext, fault: unknown): RunEnd {
  const { logger, runId } = run;
  if (!(fault instanceof SocialError)) throw fault;
  const stopped = stopReason(run);
  if (stopped !== undefined) return stopped;
  logger.warn("the network did not answer the run", { run_id: runId, kind: fault.kind, detail: fault.message });
  if (fault.kind === "unauthorized") return "not_authorized";
  if (fault.kind === "rejected") return "request_rejected";
  return fault.stop ?? "network_unavailable";
}

/** Ends that say nothing of the list, the day or the account: the same run, started once more, may well be complete. */
const PASSING: ReadonlySet<RunEnd> = new Set<RunEnd>(["network_unavailable", "clock_skewed", "stopped", "fault"]);

/** Newest first: before its start there is nothing of a run. */
const BACK_TO_START = {
  types: ["RunFinished", "DryRunFinished", "RunAbandoned", "RunStarted"],
  backwards: true,
} as const;

/** Whether a run ended for a reason that passes by itself, such as a network that was down or a process that died. */
export async function endedTransiently(store: EventStore<Event>, runId: string): Promise<boolean> {
  for await (const { type, data } of store.read(BACK_TO_START)) {
    if (!("run_id" in data) || data.run_id !== runId) continue;
    return type === "RunAbandoned" || ("reason" in data && PASSING.has(data.reason as RunEnd));
  }
  return false;
}
