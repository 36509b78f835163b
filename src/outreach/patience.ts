import { SocialError } from "../networks/network.ts";
import type { RunContext } from "./context.ts";

/** Asks the network a question; how long to bear with a 429 is the asker's matter. */
export type Patience = <T>(ask: () => Promise<T>) => Promise<T>;

/** A window that is over already must not make a busy loop. */
const WAIT_MS_MIN = 1000;

/** Waits for the window after a 429 and asks again; once the run has to end, the SocialError is thrown on. */
export function patient({ clock, sleep, signal, log, runId }: RunContext): Patience {
  return async (ask) => {
    for (;;) {
      try {
        return await ask();
      } catch (fault) {
        if (!(fault instanceof SocialError) || fault.retryAt === undefined) throw fault;
        log.info("the network asks to wait", { run_id: runId, until: new Date(fault.retryAt).toISOString() });
        await sleep(Math.max(WAIT_MS_MIN, fault.retryAt - clock()), signal);
        if (signal.aborted) throw fault;
      }
    }
  };
}

/** For somebody who waits for the answer: a 429 is thrown like any other fault. */
export const impatient: Patience = (ask) => ask();
