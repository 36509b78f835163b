import { StoreOverloaded } from "../errors.ts";
import type { Limits } from "../limits.ts";

/** The size of all jobs that are accepted and not settled yet. */
export interface Load {
  /** Throws {@link StoreOverloaded} if the job does not fit. */
  take(events: number, chars: number): void;
  giveBack(events: number, chars: number): void;
}

/** Accepts a job that exceeds the limits by itself if nothing else waits, and a job without events always. */
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
