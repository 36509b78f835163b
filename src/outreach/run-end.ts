import { LeaseLost } from "eventstore-lite";
import type { LogStore } from "../../events/catalog.ts";
import type { RunEnd } from "../../events/outreach.ts";
import { SocialError } from "../networks/network.ts";
import { STREAMS, type EventMetadata } from "../log/event-log.ts";
import { handle, type HandleDeps } from "../log/decide-and-append.ts";
import type { Projector } from "../projector/projector.ts";
import type { RunContext } from "./context.ts";
import { decideStop } from "./decide.ts";

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
const PASSING: ReadonlySet<RunEnd> = new Set<RunEnd>([
  "network_unavailable",
  "window_closed",
  "clock_skewed",
  "stopped",
  "fault",
]);

/** Newest first: before its start there is nothing of a run. */
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
 * How far a run came that ended for a reason that passes by itself, such as a network that was down or a process that
 * died; `places`: messages that it sent, or may have sent, also as far as that was settled since. Undefined: it goes on, or
 * ended for another reason.
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

/** The run that was asked to stop, now or before. */
export type StopRequested =
  { readonly kind: "stopping"; readonly run_id: string } | { readonly kind: "not_in_progress" };

/**
 * Requests a stop of run `runId` (default: the current run), on any instance: it sends nothing more, records the outcome
 * of the message in flight, and ends as `stopped`. Only a message that has passed its last check may still go out.
 */
export async function requestStop(
  deps: HandleDeps,
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

/** Aborts, with the reason that the run ends with, as soon as the log holds that the run is to stop. */
export function watchForStop(projector: Projector, runId: string): Disposable & { readonly requested: AbortSignal } {
  const stop = new AbortController();
  const look = (): void => {
    const { current } = projector.state("run");
    if (current?.run_id === runId && current.stop_requested_at !== null) stop.abort("stopped");
  };
  const unlisten = projector.listen(({ type }) => {
    if (type === "RunStopRequested") look();
  });
  // It may have been asked for while the start was being recorded.
  look();
  return { requested: stop.signal, [Symbol.dispose]: unlisten };
}
