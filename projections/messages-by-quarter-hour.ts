import type { Projection } from "./projection.ts";
import { quarterAt, type Quarters } from "./quarter-hours.ts";
import type { MessageTotals } from "./stats.ts";
import { msOf } from "./time.ts";

/**
 * Counts by quarters of an hour of the messages that were sent, skipped and failed. Their sums over all time are {@link
 * MessageTotals}.
 */
export interface Timeline {
  quarters: Quarters<MessageTotals>;
}

export const timeline: Projection<Timeline> = {
  name: "timeline",
  version: 1,
  types: ["DirectMessageSent", "DirectMessageSkipped", "DirectMessageFailed"],
  initial: () => ({ quarters: new Map() }),
  evolve(state, event) {
    const kind = KIND[event.type];
    if (kind !== undefined) quarterAt(state.quarters, msOf(event.time), noMessages)[kind]++;
    return state;
  },
};

const KIND: Readonly<Record<string, keyof MessageTotals>> = {
  DirectMessageSent: "sent",
  DirectMessageSkipped: "skipped",
  DirectMessageFailed: "failed",
};

export function noMessages(): MessageTotals {
  return { sent: 0, skipped: 0, failed: 0 };
}
