import type { PauseReason } from "../../events/outreach.ts";
import { SocialError } from "../networks/network.ts";
import type { OutreachContext, RetryPolicy, RunContext } from "./context.ts";
import { pause } from "./pacing.ts";

/** A window that is over already must not make a busy loop. */
export const RETRY_WAIT_MS_MIN = 1000;

/** Attempts of a read that the network leaves unanswered: giving up costs the run its day. */
export const READ_ATTEMPTS_MAX = 7;

/** Attempts where a caller waits for the answer, or where the read is repeated later anyway: ten seconds at the most. */
export const QUICK_ATTEMPTS_MAX = 3;

/** How often a read is retried, and how long. */
export interface RetryOptions {
  readonly attempts: number;
  /** Until a time in ms since the epoch. Answers whether to ask again then. */
  wait(reason: PauseReason, until: number): Promise<boolean>;
}

/**
 * Waits for the window after a 429, and a little after no answer at all, and asks again; once the run has to end, the
 * SocialError is thrown on.
 */
export function retryPersistently(run: RunContext): RetryPolicy {
  return (ask) => retrying(run, ask, { attempts: READ_ATTEMPTS_MAX, wait: (...until) => wait(run, ...until) });
}

/** For a caller who waits for the answer: throws a 429 like any other fault, and retries briefly during an outage. */
export function retryBriefly(run: RunContext): RetryPolicy {
  return (ask) =>
    retrying(run, ask, {
      attempts: QUICK_ATTEMPTS_MAX,
      wait: async (reason, until) => reason !== "rate_limited" && wait(run, reason, until),
    });
}

async function wait(run: RunContext, reason: PauseReason, until: number): Promise<boolean> {
  await pause(run, reason, until);
  return !run.signal.aborted;
}

export async function retrying<T>(
  { clock, random }: Pick<OutreachContext, "clock" | "random">,
  ask: () => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  for (let unanswered = 0; ;) {
    try {
      return await ask();
    } catch (fault) {
      if (!(fault instanceof SocialError)) throw fault;
      if (fault.retryAt !== undefined) {
        const until = Math.max(fault.retryAt, clock() + RETRY_WAIT_MS_MIN);
        if (!(await options.wait("rate_limited", until))) throw fault;
      } else {
        if (fault.kind !== "unavailable" || ++unanswered >= options.attempts) throw fault;
        const until = clock() + backoffMs(unanswered, random());
        if (!(await options.wait("network_unavailable", until))) throw fault;
      }
    }
  }
}

/** The six waits between seven attempts take up to seven minutes, half of that on average: X's outages are mostly shorter. */
const BACKOFF_BASE_MS = 2_000;
const BACKOFF_FACTOR = 4;
const BACKOFF_MS_MAX = 120_000;

/** How long to wait after failed attempt number `attempt` (from 1): exponential backoff with full jitter. */
function backoffMs(attempt: number, random: number): number {
  return Math.round(random * Math.min(BACKOFF_MS_MAX, BACKOFF_BASE_MS * BACKOFF_FACTOR ** (attempt - 1)));
}
