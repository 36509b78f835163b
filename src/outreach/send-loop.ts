import type { RunEnd } from "../../events/outreach.ts";
import { STREAMS } from "../log/event-log.ts";
import { handle, record } from "../log/handle.ts";
import { outreachState, quotaNow, type RunContext } from "./context.ts";
import { newSkips, remaining } from "./decide.ts";
import { pause, spacingMs } from "./pacing.ts";
import { retryPersistently } from "./retry-after-rate-limit.ts";
import { stopReason } from "./run-end.ts";
import { screenRecipients } from "./screening.ts";
import { takeTurn } from "./send.ts";

/** Each costs a person their message. */
const REJECTED_IN_A_ROW_MAX = 3;

/** Sends to all recipients who may be written to, one after the other, until something ends the run. */
export function runSendLoop(run: RunContext): Promise<RunEnd> {
  const { metadata, lease, runId: run_id } = run;
  /** When the next message may go out, ms since the epoch. */
  let nextSendAt = 0;
  let rejectedInARow = 0;
  return screenRecipients(run, {
    retry: retryPersistently(run),
    placesLeft: () => remaining(outreachState(run), run.rules, quotaNow(run)),
    async skip(refused) {
      const decide = () => ({ events: newSkips(outreachState(run), run_id, refused) });
      await handle(run, STREAMS.outreach, decide, { metadata, lease });
    },
    async write(user) {
      // Before a message and not after one: after the last there is nothing to wait for.
      await pause(run, "pace", nextSendAt);
      const stopped = stopReason(run);
      if (stopped !== undefined) return stopped;
      const { called, rate, rejected, end } = await takeTurn(run, user);
      if (end !== undefined) return end;
      const now = run.clock();
      if (called) nextSendAt = now + spacingMs(rate, now, run.spacingMs, run.random());
      // One person may be at fault, or one text; this many in a row have our request in common.
      rejectedInARow = rejected ? rejectedInARow + 1 : 0;
      return rejectedInARow >= REJECTED_IN_A_ROW_MAX ? "request_rejected" : undefined;
    },
    async finishPage(read) {
      await record(run, STREAMS.outreach, [{ type: "SourceRead", data: { ...read, run_id } }], { metadata, lease });
    },
  });
}
