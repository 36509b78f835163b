import { StoreOverloaded } from "../errors.ts";
import type { Limits } from "../limits.ts";
import type { Weight } from "./jobs.ts";

/** How much is accepted and not settled yet. */
export interface Load {
  /** Throws {@link StoreOverloaded} when it does not fit any more. */
  take(weight: Weight): void;
  giveBack(weight: Weight): void;
}

/** A job that is larger than the limits by itself is still taken when nothing else waits, and one without weight always. */
export function createLoad({ queuedEvents, queuedChars }: Limits): Load {
  let events = 0;
  let chars = 0;
  return {
    take(weight) {
      const fits = events + weight.events <= queuedEvents && chars + weight.chars <= queuedChars;
      if (!fits && events > 0 && weight.events > 0) throw new StoreOverloaded();
      events += weight.events;
      chars += weight.chars;
    },
    giveBack(weight) {
      events -= weight.events;
      chars -= weight.chars;
    },
  };
}
