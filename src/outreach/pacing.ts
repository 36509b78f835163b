import { LeaseLost } from "eventstore-lite";
import type { PauseReason } from "../../events/outreach.ts";
import { isoTime } from "../platform/clock.ts";
import { STREAMS } from "../log/event-log.ts";
import { record } from "../log/handle.ts";
import type { RateWindow } from "../networks/network.ts";
import type { RunContext } from "./context.ts";

/** With no header seen: one message a minute, X's documented 15 in 15 minutes. */
const DEFAULT_SPACING_MS = 60_000;

/** Sends at even distances look like what they are, and several accounts would keep in step: a fifth of it is chance. */
const JITTER = 0.2;

/**
 * How long to wait after a send until the next one. An exhausted window is waited out; else a fixed spacing where one
 * is configured; else what is left of the window is spread over the time to its reset, a little sooner or later by
 * chance (`random` from 0 to 1): the next answer says what is left, so that nothing adds up. All times in ms.
 */
export function spacingMs(
  rate: RateWindow | undefined,
  now: number,
  fixedMs: number | undefined,
  random: number,
): number {
  const untilReset = rate === undefined ? 0 : Math.max(0, rate.resetAt - now);
  if (rate !== undefined && rate.remaining <= 0) return untilReset;
  if (fixedMs !== undefined) return fixedMs;
  // Without a header nothing would even out a message that came too soon.
  if (rate === undefined) return Math.ceil(DEFAULT_SPACING_MS * (1 + JITTER * random));
  return Math.ceil((untilReset / rate.remaining) * (1 + JITTER * (2 * random - 1)));
}

/** Shorter waits are not recorded: they end before an operator could read of them. */
const RECORDED_MS_MIN = 1_000;

/** Waits until `until` (ms since the epoch), or less when the run has to end; the log says why and until when. */
export async function pause(run: RunContext, reason: PauseReason, until: number): Promise<void> {
  const ms = until - run.clock();
  if (run.signal.aborted) return;
  if (ms > RECORDED_MS_MIN) await recordPause(run, reason, until);
  await run.sleep(until - run.clock(), run.signal);
}

async function recordPause(run: RunContext, reason: PauseReason, until: number): Promise<void> {
  const data = { run_id: run.runId, reason, until: isoTime(until) };
  try {
    const { metadata, lease } = run;
    await record(run, STREAMS.outreach, [{ type: "RunPaused", data }], { metadata, lease });
  } catch (fault) {
    // Another instance has the runs now; the next decision finds out, and nothing is decided here.
    if (!(fault instanceof LeaseLost)) throw fault;
  }
}
