import { createIntakePriority } from "../delivery/intake-priority.ts";
import type { Clock } from "../platform/clock.ts";

/** Events a second that all streams together go on with while requests wait for each other. */
const EVENTS_PER_SECOND = 2_000;

/** What a turn is taken to send until it is known: about what is read of the log at once. */
const EXPECTED_EVENTS = 128;

/** How soon a stream that waits finds out that nothing is in its way any more. */
const LOOK_MS = 1_000;

/** Streams of events give way to requests: whoever follows the log catches up from it later. */
export interface StreamPace {
  /**
   * Resolves when the next events may be sent, or `signal` aborts: one stream after the other, in the order in which they
   * asked. Whoever had the turn calls the answer with the number of events that were sent.
   */
  turn(signal: AbortSignal): Promise<(events: number) => void>;
}

/** `requests`: how many came so far. */
export function createStreamPace(
  requests: () => number,
  clock: Clock,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
): StreamPace {
  const intake = createIntakePriority(requests);
  /** When all turns that were taken have had their time; ms since the epoch. */
  let freeAt = 0;

  return {
    async turn(signal) {
      let now = clock();
      if (!intake.isBusy(now)) {
        // Nobody waits any more, whatever time was taken.
        freeAt = 0;
        return () => {};
      }
      // Each turn has a time of its own: if all waited for the same one, they would all go at once.
      const at = Math.max(freeAt, now);
      freeAt = at + durationOf(EXPECTED_EVENTS);
      for (; now < at && intake.isBusy(now) && !signal.aborted; now = clock()) {
        await sleep(Math.min(at - now, LOOK_MS), signal);
      }
      return (events) => {
        freeAt += durationOf(events - EXPECTED_EVENTS);
      };
    },
  };
}

/** The milliseconds that so many events take. */
function durationOf(events: number): number {
  return (events / EVENTS_PER_SECOND) * 1_000;
}
