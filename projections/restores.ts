import type { EventType } from "../events/event-types-and-codec.ts";
import type { Projection } from "./projection.ts";

/**
 * Time of the last restore or loss of events. Actions from before that time may have happened although the log does not
 * hold them.
 */
export interface Restores {
  /** Time when the log was last restored or lost events, ISO 8601; null if never. */
  last: string | null;
}

/** Event types after which the log may not know what was done before them. */
export const RESTORES: readonly EventType[] = ["LogRestored", "LogLossAccepted"];

export const restores: Projection<Restores> = {
  name: "restores",
  version: 1,
  types: RESTORES,
  initial: () => ({ last: null }),
  evolve(state, event) {
    if (RESTORES.includes(event.type)) state.last = event.time;
    return state;
  },
};
