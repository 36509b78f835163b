import { STREAMS, type EventMetadata } from "../log/event-log.ts";
import { handle, type HandleDeps } from "../log/handle.ts";
import type { Projector } from "../projector/projector.ts";
import { decideStop } from "./decide.ts";

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
