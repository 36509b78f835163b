import { LeaseLost } from "eventstore-lite";
import type { PauseReason } from "../../events/outreach.ts";
import { isoTime, backoffMs } from "../platform/clock.ts";
import { STREAMS } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { SocialError, type RateWindow } from "../networks/network.ts";
import type { OutreachContext, RetryPolicy, RunContext, Waiting } from "./context.ts";

/**
 * Time between two sends, in ms, if the network's answer has no rate-limit header: one message a minute, X's documented
 * 15 in 15 minutes.
 */
export const DEFAULT_SPACING_MS = 60_000;

/**
 * Random share of the time between two sends: a fifth. Even distances look automated, and several accounts would send
 * in step.
 */
const JITTER = 0.2;

/**
 * Returns how long to wait after a send, in ms. Waits out an exhausted window. Otherwise uses a fixed spacing if there
 * is one, or spreads the rest of the window over the time to its reset, varied by chance (`random` from 0 to 1).
 */
export function spacingMs(rate: RateWindow | undefined, now: number, fixedMs: number | undefined, random: number) {
  const untilReset = rate === undefined ? 0 : Math.max(0, rate.resetAt - now);
  if (rate !== undefined && rate.remaining <= 0) return untilReset;
  if (fixedMs !== undefined) return fixedMs;
  // Without a header nothing would compensate for a message that came too soon.
  if (rate === undefined) return Math.ceil(DEFAULT_SPACING_MS * (1 + JITTER * random));
  // The next answer says what is left, so the variations do not add up.
  return Math.ceil((untilReset / rate.remaining) * (1 + JITTER * (2 * random - 1)));
}

/** Shortest pause of a run that is recorded. A shorter one ends before an operator could read about it. */
const RECORDED_MS_MIN = 1_000;

export function isRecordedPause(ms: number): boolean {
  return ms > RECORDED_MS_MIN;
}

/**
 * Waits until `until` (ms since the epoch), or less if the run must end. Before a long wait, appends to the log why and
 * until when.
 */
export async function pause(run: Omit<RunContext, "pause">, reason: PauseReason, until: number): Promise<void> {
  const ms = until - run.clock();
  if (run.signal.aborted) return;
  if (isRecordedPause(ms)) await recordPause(run, reason, until);
  await run.sleep(until - run.clock(), run.signal);
}

async function recordPause(run: Omit<RunContext, "pause">, reason: PauseReason, until: number): Promise<void> {
  const data = { run_id: run.runId, reason, until: isoTime(until) };
  try {
    const { metadata, lease } = run;
    await record(run, STREAMS.outreach, [{ type: "RunPaused", data }], { metadata, lease });
  } catch (fault) {
    // Another instance holds the lease for runs now. The next decision notices that; nothing is decided here.
    if (!(fault instanceof LeaseLost)) throw fault;
  }
}

/** Shortest wait before a retry, in ms, so that a rate-limit window that is already over does not cause a busy loop. */
export const RETRY_WAIT_MS_MIN = 1000;

/** Most attempts at a read that the network does not answer. A run that gives up sends nothing more that day. */
export const READ_ATTEMPTS_MAX = 7;

/**
 * Most attempts at a read if a caller waits for the answer, or if the read is repeated later anyway. They take ten
 * seconds at most.
 */
export const QUICK_ATTEMPTS_MAX = 3;

/**
 * Creates a function that retries reads of the network: after a 429 once the rate-limit window resets, and without an
 * answer after a short wait. `throwsLimit`: a 429 is thrown instead, because a caller waits.
 */
export function createRetry(
  { clock, random }: OutreachContext,
  { signal, pause }: Waiting,
  attempts: number,
  throwsLimit = false,
): RetryPolicy {
  return async (ask) => {
    for (let unanswered = 0; ;) {
      try {
        return await ask();
      } catch (fault) {
        if (!(fault instanceof SocialError)) throw fault;
        if (fault.retryAt !== undefined) {
          if (throwsLimit) throw fault;
          await pause("rate_limited", Math.max(fault.retryAt, clock() + RETRY_WAIT_MS_MIN));
        } else {
          if (fault.kind !== "unavailable" || ++unanswered >= attempts) throw fault;
          await pause("network_unavailable", clock() + backoffMs(unanswered, random(), BACKOFF));
        }
        if (signal.aborted) throw fault;
      }
    }
  };
}

/**
 * Backoff between the attempts at an unanswered read. Six waits between seven attempts take up to seven minutes; X's
 * outages are mostly shorter.
 */
const BACKOFF = { baseMs: 2_000, factor: 4, maxMs: 120_000 };
