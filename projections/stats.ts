import type { Projection } from "./projection.ts";

/**
 * Counts of all outreach messages so far, by their outcome. Dry runs append none of these events, so they never count.
 */
export interface MessageTotals {
  sent: number;
  skipped: number;
  failed: number;
}

export interface Stats extends MessageTotals {
  /** Counts of each campaign but `default`, by its name; absent if there are none. */
  campaigns?: Map<string, MessageTotals>;
}

export const stats: Projection<Stats> = {
  name: "stats",
  version: 2,
  types: ["DirectMessageSent", "DirectMessageSkipped", "DirectMessageFailed"],
  initial: () => ({ sent: 0, skipped: 0, failed: 0 }),
  evolve(state, event) {
    const kind = KINDS[event.type as keyof typeof KINDS];
    if (kind === undefined) return state;
    state[kind]++;
    const { campaign } = event.data as { readonly campaign?: string };
    if (campaign !== undefined) {
      state.campaigns ??= new Map();
      state.campaigns.getOrInsertComputed(campaign, () => ({ sent: 0, skipped: 0, failed: 0 }))[kind]++;
    }
    return state;
  },
};

const KINDS = {
  DirectMessageSent: "sent",
  DirectMessageSkipped: "skipped",
  DirectMessageFailed: "failed",
} as const;
