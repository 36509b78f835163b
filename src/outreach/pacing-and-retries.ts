import { LeaseLost } from "eventstore-lite";
import type { PauseReason } from "../../events/outreach.ts";
import { isoTime, backoffMs } from "../platform/clock-ids-and-timers.ts";
import { STREAMS } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { SocialError, type RateWindow } from "../networks/network.ts";
import type { OutreachContext, RetryPolicy, RunContext, Waiting } from "./run-context.ts";

/**
 * Time between two messages, in ms, if the network's answer has no rate-limit header. X documents 15 messages in 15
 * minutes.
 */
export const DEFAULT_SPACING_MS = 60_000;

/**
 * Share of the time between two messages by which chance varies it: a fifth. Equal times look automated, and several
 * accounts would send at the same moments.
 */
const JITTER = 0.2;

/**
 * Returns how long to wait after a send, in ms: until the reset if the rate limit is used up, else the configured time,
 * else an equal share of the time to the reset, varied by chance (`random`: 0 to 1).
 */
export function spacingMs(rate: RateWindow | undefined, now: number, fixedMs: number | undefined, random: number) {
  const untilReset = rate === undefined ? 0 : Math.max(0, rate.resetAt - now);
  if (rate !== undefined && rate.remaining <= 0) return untilReset;
  if (fixedMs !== undefined) return fixedMs;
  // Without a rate-limit header, the random share only lengthens the wait. If a message were sent too soon, the next
  // answer would not state the remaining limit either, so the following waits could not make up for it.
  if (rate === undefined) return Math.ceil(DEFAULT_SPACING_MS * (1 + JITTER * random));
  // Chance may shorten this time too, because the next answer states the remaining limit again.
  return Math.ceil((untilReset / rate.remaining) * (1 + JITTER * (2 * random - 1)));
}

/** Pauses of a run up to this length, in ms, are not recorded: they end before an operator could read about them. */
const RECORDED_MS_MIN = 1_000;

export function isRecordedPause(ms: number): boolean {
  return ms > RECORDED_MS_MIN;
}

/**
 * Waits until `until` (ms since the epoch), or until the run must end. Before a wait of over a second, appends why the
 * run pauses and until when.
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
    // A lost lease is ignored here, because the run notices at its next decision that another instance took it.
    if (!(fault instanceof LeaseLost)) throw fault;
  }
}

/**
 * Minimum wait after a 429, in ms: if its reset time has already passed, the run would otherwise ask without a pause.
 */
export const RETRY_WAIT_MS_MIN = 1000;

/** Maximum number of attempts at a read that the network does not answer. After the last one the run ends. */
export const READ_ATTEMPTS_MAX = 7;

/**
 * Maximum number of attempts at a read if a caller waits for it, or if it is repeated later anyway. They take up to ten
 * seconds.
 */
export const QUICK_ATTEMPTS_MAX = 3;

/**
 * Creates a function that retries reads: after a 429 when the rate limit resets, and after a short wait if the network
 * does not answer. With `throwsLimit`, a 429 is thrown, because a caller waits for the answer.
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
