import type { EventType } from "../events/catalog.ts";
import type { Projection } from "./projection.ts";

/** Whether the log may lack something that was done: since then, what it does not hold may have happened all the same. */
export interface Restores {
  /** When that was last so, ISO 8601; null: never. */
  last: string | null;
}

/** After these the log may not know what was done before them. */
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
