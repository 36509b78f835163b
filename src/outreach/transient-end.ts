import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { RunEnd } from "../../events/outreach.ts";

/** Ends that say nothing of the list, the day or the account: the same run, started once more, may well be complete. */
const PASSING: ReadonlySet<RunEnd> = new Set<RunEnd>(["network_unavailable", "stopped", "fault"]);

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
