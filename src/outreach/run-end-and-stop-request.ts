import { LeaseLost } from "eventstore-lite";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import type { RunEnd } from "../../events/outreach.ts";
import type { Run } from "../../projections/current-run.ts";
import { SocialError } from "../networks/network.ts";
import { STREAMS, type EventMetadata, type StateContext } from "../log/event-log.ts";
import { handle, type AppendDecision } from "../log/decide-and-append.ts";
import type { Projector } from "../projector/projector.ts";
import type { RunContext } from "./run-context.ts";

const CALLS_FOR_ACTION: ReadonlySet<RunEnd> = new Set([
  "credits_depleted",
  "usage_capped",
  "sender_restricted",
  "missing_scope",
  "app_not_enrolled",
  "request_rejected",
  "log_restored",
  "clock_skewed",
  "too_many_failures",
]);

/**
 * True if the chat must be told that an operator has to act. If X revoked the authorization, the code that notices this
 * tells the chat; here it is told only if a freshly renewed authorization was refused.
 */
export function callsForAction({ projector }: RunContext, reason: RunEnd): boolean {
  return CALLS_FOR_ACTION.has(reason) || (reason === "not_authorized" && projector.state("account").authorized);
}

/** Returns why a run must stop before its next message; `fault` if its lease was lost. Undefined if it continues. */
export function stopReason({ signal }: RunContext): RunEnd | undefined {
  if (!signal.aborted) return undefined;
  return signal.reason instanceof LeaseLost ? "fault" : (signal.reason as RunEnd);
}

/** Turns a fault of the network into the reason why a run ends. Throws any other fault. */
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

/** Reasons for a run's end that pass by themselves, so that the same run may complete if it is started again. */
const PASSING: ReadonlySet<RunEnd> = new Set<RunEnd>([
  "network_unavailable",
  "window_closed",
  "clock_skewed",
  "stopped",
  "fault",
]);

/** Query that reads events of runs, newest first. Readers stop at the start of the run that they look for. */
const BACK_TO_START = {
  types: [
    "RunFinished",
    "DryRunFinished",
    "RunAbandoned",
    "DirectMessageAttempted",
    "DirectMessageFailed",
    "RunStarted",
  ],
  backwards: true,
} as const;

/**
 * Returns how many messages a run sent or may have sent (`places`), if it ended for a passing reason, such as an outage
 * or a dead process. Undefined if it is in progress or ended for another reason.
 */
export async function findTransientEnd(store: LogStore, runId: string) {
  let hasEnded = false;
  let places = 0;
  for await (const { type, data } of store.read(BACK_TO_START)) {
    if (!("run_id" in data) || data.run_id !== runId) continue;
    if (type === "DirectMessageAttempted") places++;
    else if ("frees_quota" in data) places -= data.frees_quota ? 1 : 0;
    else if (type === "RunStarted") return hasEnded ? { places } : undefined;
    else if (type === "RunAbandoned" || ("reason" in data && PASSING.has(data.reason as RunEnd))) hasEnded = true;
    else return undefined;
  }
  return undefined;
}

/**
 * Decides the event that requests a stop of run `runId` (default: the current run). No event if a stop was requested
 * before.
 */
export function decideStop(
  { run: { current } }: { readonly run: Run },
  runId: string | undefined,
): AppendDecision<"not_in_progress"> {
  if (current === null || current.run_id !== (runId ?? current.run_id)) return { refusal: "not_in_progress" };
  if (current.stop_requested_at !== null) return { events: [] };
  return { events: [{ type: "RunStopRequested", data: { run_id: current.run_id } }] };
}

/** Answer to a request to stop a run: the id of the run that is being stopped, or that none is in progress. */
export type StopRequested =
  { readonly kind: "stopping"; readonly run_id: string } | { readonly kind: "not_in_progress" };

/**
 * Requests a stop of run `runId` (default: the current run), on any instance. That run records the outcome of the
 * message being sent and ends as `stopped`.
 */
export async function requestStop(
  deps: StateContext,
  runId: string | undefined,
  metadata: EventMetadata,
): Promise<StopRequested> {
  let stopping: string | undefined;
  const decide = () => {
    const run = deps.projector.state("run");
    stopping = run.current?.run_id;
    return decideStop({ run }, runId);
  };
  const handled = await handle(deps, STREAMS.outreach, decide, { metadata });
  if ("refusal" in handled || stopping === undefined) return { kind: "not_in_progress" };
  return { kind: "stopping", run_id: stopping };
}

/** Returns a signal that aborts with the reason `stopped` as soon as the log holds a request to stop the run. */
export function watchForStop(projector: Projector, runId: string): Disposable & { readonly requested: AbortSignal } {
  const stop = new AbortController();
  const look = (): void => {
    const { current } = projector.state("run");
    if (current?.run_id === runId && current.stop_requested_at !== null) stop.abort("stopped");
  };
  const unlisten = projector.listen(({ type }) => {
    if (type === "RunStopRequested") look();
  });
  // The stop may have been requested before this listener was added, while the start of the run was being recorded.
  look();
  return { requested: stop.signal, [Symbol.dispose]: unlisten };
}
