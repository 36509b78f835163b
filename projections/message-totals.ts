import { DEFAULT_CAMPAIGN } from "../events/campaign.ts";
import type { Folded } from "../events/event-types-and-codec.ts";
import type { Projection } from "./projection.ts";

/**
 * Counts of all outreach messages so far, by their outcome. Dry runs append none of these events, so they never count.
 */
export interface MessageTotals {
  sent: number;
  skipped: number;
  failed: number;
  /** Part of `skipped`: recipients contacted by an earlier run. */
  contacted: number;
}

export interface Stats extends MessageTotals {
  /** Counts of each campaign but `default`, by its name; absent if there are none. */
  campaigns?: Map<string, MessageTotals>;
}

export const stats: Projection<Stats> = {
  name: "stats",
  version: 3,
  types: ["DirectMessageSent", "DirectMessageSkipped", "DirectMessageFailed"],
  initial: noMessages,
  evolve(state, event) {
    countOutcome(state, event);
    const { campaign } = event.data as { readonly campaign?: string };
    if (campaign !== undefined && event.type in KINDS) {
      state.campaigns ??= new Map();
      countOutcome(state.campaigns.getOrInsertComputed(campaign, noMessages), event);
    }
    return state;
  },
};

const KINDS = {
  DirectMessageSent: "sent",
  DirectMessageSkipped: "skipped",
  DirectMessageFailed: "failed",
} as const;

export function noMessages(): MessageTotals {
  return { sent: 0, skipped: 0, failed: 0, contacted: 0 };
}

/** Adds the outcome of a message to the counts. Other events add nothing. */
export function countOutcome(totals: MessageTotals, { type, data }: Folded): void {
  const kind = KINDS[type as keyof typeof KINDS];
  if (kind !== undefined) totals[kind]++;
  if (type === "DirectMessageSkipped" && data.reason === "already_contacted") totals.contacted++;
}

/** Returns the counts of each campaign. Those of `default` are the total without the counts of all other campaigns. */
export function countCampaigns({ campaigns = new Map(), sent, skipped, failed }: Stats) {
  const own = { campaign: DEFAULT_CAMPAIGN, sent, skipped, failed };
  const others = [...campaigns].map(([campaign, counts]) => {
    for (const kind of ["sent", "skipped", "failed"] as const) own[kind] -= counts[kind];
    return { campaign, sent: counts.sent, skipped: counts.skipped, failed: counts.failed };
  });
  return [own, ...others];
}
