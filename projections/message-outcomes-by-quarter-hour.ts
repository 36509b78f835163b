import type { Projection } from "./projection.ts";
import { quarterAt, type Quarters } from "./count-by-quarter-hour.ts";
import { countOutcome, noMessages, type MessageTotals } from "./message-totals.ts";
import { msOf } from "./parse-log-times.ts";

/**
 * Counts by quarters of an hour of the messages that were sent, skipped and failed. Their sums over all time are {@link
 * MessageTotals}.
 */
export interface Timeline {
  quarters: Quarters<MessageTotals>;
}

export const timeline: Projection<Timeline> = {
  name: "timeline",
  version: 2,
  types: ["DirectMessageSent", "DirectMessageSkipped", "DirectMessageFailed"],
  initial: () => ({ quarters: new Map() }),
  evolve(state, event) {
    if (timeline.types.includes(event.type))
      countOutcome(quarterAt(state.quarters, msOf(event.time), noMessages), event);
    return state;
  },
};
