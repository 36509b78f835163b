import { LeaseLost } from "eventstore-lite";
import type { PauseReason } from "../../events/outreach.ts";
import { isoTime } from "../platform/clock.ts";
import { STREAMS } from "../log/event-log.ts";
import { record } from "../log/handle.ts";
import type { RunContext } from "./context.ts";

/** Shorter waits are over before anybody could read of them. */
const TOLD_MS_MIN = 1_000;

/** Waits until `until` (ms since the epoch), or less when the run has to end; the log tells why and until when. */
export async function pause(run: RunContext, reason: PauseReason, until: number): Promise<void> {
  const ms = until - run.clock();
  if (run.signal.aborted) return;
  if (ms > TOLD_MS_MIN) await recordPause(run, reason, until);
  await run.sleep(until - run.clock(), run.signal);
}

async function recordPause(run: RunContext, reason: PauseReason, until: number): Promise<void> {
  const data = { run_id: run.runId, reason, until: isoTime(until) };
  try {
    const { metadata, fence } = run;
    await record(run, STREAMS.outreach, [{ type: "RunPaused", data }], { metadata, fence });
  } catch (fault) {
    // Somebody else has the runs now; the next decision finds out, and nothing is decided here.
    if (!(fault instanceof LeaseLost)) throw fault;
  }
}
