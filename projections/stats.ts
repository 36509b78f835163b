import type { Folded } from "../events/catalog.ts";
import type { Projection } from "./projection.ts";

/**
 * Counts of all outreach messages so far, by their outcome. Dry runs append none of these events, so they never count.
 */
export interface MessageTotals {
  sent: number;
  /** Skipped recipients, without those contacted earlier. */
  skipped: number;
  failed: number;
}

export interface Stats extends MessageTotals {
  /** Counts of each campaign but `default`, by its name; absent if there are none. */
  campaigns?: Map<string, MessageTotals>;
}

export const stats: Projection<Stats> = {
  name: "stats",
  version: 3,
  types: ["DirectMessageSent", "DirectMessageSkipped", "DirectMessageFailed"],
  initial: () => ({ sent: 0, skipped: 0, failed: 0 }),
  evolve(state, event) {
    const kind = KINDS[event.type as keyof typeof KINDS];
    if (kind === undefined || isContactedEarlier(event)) return state;
    state[kind]++;
    const { campaign } = event.data as { readonly campaign?: string };
    if (campaign !== undefined) {
      state.campaigns ??= new Map();
      state.campaigns.getOrInsertComputed(campaign, () => ({ sent: 0, skipped: 0, failed: 0 }))[kind]++;
    }
    return state;
  },
};

/** True if the event is the skip of a recipient who was contacted earlier, which is usual and counts nowhere. */
export function isContactedEarlier({ type, data }: Folded): boolean {
  return type === "DirectMessageSkipped" && data.reason === "already_contacted";
}

const KINDS = {
  DirectMessageSent: "sent",
  DirectMessageSkipped: "skipped",
  DirectMessageFailed: "failed",
} as const;
