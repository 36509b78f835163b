import { SocialError } from "../networks/network.ts";
import type { RunContext } from "./context.ts";
import { pause } from "./pause.ts";

/** Asks the network a question; how long to bear with a 429 is the asker's matter. */
export type Patience = <T>(ask: () => Promise<T>) => Promise<T>;

/** A window that is over already must not make a busy loop. */
export const RETRY_WAIT_MS_MIN = 1000;

/** Waits for the window after a 429 and asks again; once the run has to end, the SocialError is thrown on. */
export function patient(run: RunContext): Patience {
  return (ask) =>
    patiently(
      ask,
      async (retryAt) => {
        await pause(run, "rate_limited", retryAt);
        return !run.signal.aborted;
      },
      run.clock,
    );
}

/** `wait` answers whether to ask again. */
export async function patiently<T>(
  ask: () => Promise<T>,
  wait: (until: number) => Promise<boolean>,
  clock: () => number,
): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (fault) {
      if (!(fault instanceof SocialError) || fault.retryAt === undefined) throw fault;
      if (!(await wait(Math.max(fault.retryAt, clock() + RETRY_WAIT_MS_MIN)))) throw fault;
    }
  }
}

/** For somebody who waits for the answer: a 429 is thrown like any other fault. */
export const impatient: Patience = (ask) => ask();
