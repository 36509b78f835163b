import type { Projection } from "./projection.ts";

/** How far the messages to us were read; the network lists them newest first. */
export interface Inbox {
  /** All messages up to this one were read; null before the first reading, and while there was none. */
  newest_id: string | null;
  /** Where to continue reading messages older than the first reading; null if none are left. */
  backlog: string | null;
  /** True once the messages were read for the first time. */
  begun: boolean;
}

export const inbox: Projection<Inbox> = {
  name: "inbox",
  version: 1,
  types: ["InboxRead", "AccountUnlinked"],
  initial: () => ({ newest_id: null, backlog: null, begun: false }),
  evolve(state, event) {
    // Another account has other conversations.
    if (event.type === "AccountUnlinked") return inbox.initial();
    if (event.type !== "InboxRead") return state;
    state.newest_id = event.data.newest_id ?? state.newest_id;
    state.backlog = event.data.backlog ?? null;
    state.begun = true;
    return state;
  },
};
