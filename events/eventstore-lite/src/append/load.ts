import { StoreOverloaded } from "../errors.ts";
import type { Limits } from "../limits.ts";

/** How much is accepted and not settled yet. */
export interface Load {
  /** Throws {@link StoreOverloaded} when it does not fit any more. */
  take(events: number, chars: number): void;
  giveBack(events: number, chars: number): void;
}

/** A job that is larger than the limits by itself is still taken when nothing else waits, and one without events always. */
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
