import type { Projection } from "./projection.ts";

/** Counts of all outreach messages so far. Dry runs append none of these events, so they never count. */
export interface Stats {
  sent: number;
  skipped: number;
  failed: number;
}

export const stats: Projection<Stats> = {
  name: "stats",
  version: 1,
  types: ["DirectMessageSent", "DirectMessageSkipped", "DirectMessageFailed"],
  initial: () => ({ sent: 0, skipped: 0, failed: 0 }),
  evolve(state, event) {
    if (event.type === "DirectMessageSent") state.sent++;
    else if (event.type === "DirectMessageSkipped") state.skipped++;
    else if (event.type === "DirectMessageFailed") state.failed++;
    return state;
  },
};
