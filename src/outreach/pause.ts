import { LeaseLost } from "eventstore-lite";
import type { PauseReason } from "../../events/outreach.ts";
import { isoTime } from "../platform/clock.ts";
import { STREAMS } from "../log/event-log.ts";
import type { RunContext } from "./context.ts";

/** Shorter waits are over before anybody could read of them. */
const TOLD_MS_MIN = 1_000;

/** Waits until `until` (ms since the epoch), or less when the run has to end; the log tells why and until when. */
export async function pause(run: RunContext, reason: PauseReason, until: number): Promise<void> {
  const ms = until - run.clock();
  if (run.signal.aborted) return;
  if (ms > TOLD_MS_MIN) await tell(run, reason, until);
  await run.sleep(until - run.clock(), run.signal);
}

async function tell(run: RunContext, reason: PauseReason, until: number): Promise<void> {
  const data = { run_id: run.runId, reason, until: isoTime(until) };
  try {
    const appended = await run.eventLog.append(STREAMS.outreach, [{ type: "RunPaused", data }], run.metadata, {
      fence: run.fence,
    });
    await run.projector.until(appended.last);
  } catch (fault) {
    // Somebody else has the runs now; the next decision finds out, and nothing is decided here.
    if (!(fault instanceof LeaseLost)) throw fault;
  }
}
