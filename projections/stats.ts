import { DEFAULT_CAMPAIGN } from "../events/campaign.ts";
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

/** Returns the counts of each campaign. Those of `default` are the total without the counts of all other campaigns. */
export function countCampaigns({ campaigns = new Map(), ...all }: Stats) {
  const own = { campaign: DEFAULT_CAMPAIGN, ...all };
  for (const counts of campaigns.values())
    for (const kind of ["sent", "skipped", "failed"] as const) own[kind] -= counts[kind];
  return [own, ...[...campaigns].map(([campaign, counts]) => ({ campaign, ...counts }))];
}
