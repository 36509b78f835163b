import type { Projection } from "./projection.ts";

/** State of reading the messages to our account, which the network lists newest first. */
export interface Inbox {
  /**
   * Id of the newest message that was read; all messages before it were read too. Null before the first reading, and
   * while there was no message.
   */
  newest_id: string | null;
  /** Cursor at which to continue reading messages older than the first reading; null if none are left. */
  backlog: string | null;
  /** True once the inbox was read for the first time. */
  begun: boolean;
}

export const inbox: Projection<Inbox> = {
  name: "inbox",
  version: 1,
  types: ["InboxRead", "AccountUnlinked"],
  initial: () => ({ newest_id: null, backlog: null, begun: false }),
  evolve(state, event) {
    // The account that is linked next has other conversations, so reading begins from the start.
    if (event.type === "AccountUnlinked") return inbox.initial();
    if (event.type !== "InboxRead") return state;
    state.newest_id = event.data.newest_id ?? state.newest_id;
    state.backlog = event.data.backlog ?? null;
    state.begun = true;
    return state;
  },
};
