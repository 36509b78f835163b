import type { Projection } from "./projection.ts";

/**
 * How many messages count against each day. A place is taken by the intent; only a certain refusal by the network
 * gives it back, an unknown outcome does not.
 */
export interface Quota {
  /**
   * Calendar day (YYYY-MM-DD in the quota's time zone) -> places taken. No day is ever forgotten: ten years are some
   * 3,650 entries, and a clock that jumps back must find what it used.
   */
  days: Map<string, number>;
  /** Intents without a final outcome -> their day. */
  open: Map<string, string>;
}

export const quota: Projection<Quota> = {
  name: "quota",
  version: 2,
  types: ["DirectMessageAttempted", "DirectMessageSent", "DirectMessageFailed"],
  initial: () => ({ days: new Map(), open: new Map() }),
  evolve(state, event) {
    if (event.type === "DirectMessageAttempted") {
      const { attempt_id, day } = event.data;
      state.days.set(day, usedOn(state, day) + 1);
      state.open.set(attempt_id, day);
    } else if (event.type === "DirectMessageSent") {
      state.open.delete(event.data.attempt_id);
    } else if (event.type === "DirectMessageFailed") {
      const day = state.open.get(event.data.attempt_id);
      state.open.delete(event.data.attempt_id);
      if (day !== undefined && event.data.frees_quota) state.days.set(day, Math.max(0, usedOn(state, day) - 1));
    }
    return state;
  },
};

/** Places taken on `day`. */
export function usedOn(state: Quota, day: string): number {
  return state.days.get(day) ?? 0;
}
