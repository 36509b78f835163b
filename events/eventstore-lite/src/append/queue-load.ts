import { StoreOverloaded } from "../errors.ts";
import type { Limits } from "../limits.ts";

/** The size of all jobs that are accepted and not settled yet. */
export interface Load {
  /**
   * Adds a job's events and characters to the load. Throws {@link StoreOverloaded} if they exceed the limits of the
   * queue.
   */
  take(events: number, chars: number): void;
  giveBack(events: number, chars: number): void;
}

/**
 * Creates the counter of queued work. A job that exceeds the limits by itself is accepted if no other job is queued. A
 * job without events, such as a close, is always accepted.
 */
export function createLoad({ queuedEvents, queuedChars }: Limits): Load {
  let [eventsTaken, charsTaken] = [0, 0];
  return {
    take(events, chars) {
      const fits = eventsTaken + events <= queuedEvents && charsTaken + chars <= queuedChars;
      if (!fits && eventsTaken > 0 && events > 0) throw new StoreOverloaded();
      eventsTaken += events;
      charsTaken += chars;
    },
    giveBack(events, chars) {
      eventsTaken -= events;
      charsTaken -= chars;
    },
  };
}
