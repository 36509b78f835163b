import { createIntakePriority } from "../delivery/intake-priority.ts";
import type { Clock } from "../platform/clock.ts";

/** Events a second that all streams together go on with while requests wait for each other. */
const EVENTS_PER_SECOND = 2_000;

/** How soon a stream that waits finds out that nothing is in its way any more. */
const LOOK_MS = 1_000;

/** Streams of events give way to requests: whoever follows the log catches up from it later. */
export interface StreamPace {
  /** Resolves when the next events may be sent, or `signal` aborts. */
  turn(signal: AbortSignal): Promise<void>;
  /** So many were sent. */
  sent(events: number): void;
}

/** `requests`: how many came so far. */
export function createStreamPace(
  requests: () => number,
  clock: Clock,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
): StreamPace {
  const intake = createIntakePriority(requests);
  /** When what was sent has had its time; ms since the epoch. */
  let freeAt = 0;
  return {
    async turn(signal) {
      for (let now = clock(); now < freeAt && intake.isBusy(now) && !signal.aborted; now = clock()) {
        await sleep(Math.min(freeAt - now, LOOK_MS), signal);
      }
    },
    sent(events) {
      const now = clock();
      // What was sent while there was time for it is not counted.
      if (intake.isBusy(now)) freeAt = Math.max(freeAt, now) + (events / EVENTS_PER_SECOND) * 1_000;
    },
  };
}
