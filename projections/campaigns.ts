import type { CampaignDefinition } from "../events/campaign.ts";
import type { Folded } from "../events/event-types-and-codec.ts";
import type { Projection } from "./projection.ts";

/** A campaign that an operator created. The campaign `default` is not among these, because the settings describe it. */
export interface Campaign extends CampaignDefinition {
  readonly created_at: string;
  /** Position and time (ISO 8601) of the last event that describes the campaign. */
  readonly changed: number;
  readonly changed_at: string;
  /** Positions of all events about the campaign, in the order of the log. */
  readonly positions: readonly number[];
  /** Time at which an operator ended the campaign, ISO 8601; null if none did. */
  readonly ended_at: string | null;
}

/** Campaigns by their names, in the order in which they were created. */
export interface Campaigns {
  named: Map<string, Campaign>;
}

export const campaigns: Projection<Campaigns> = {
  name: "campaigns",
  version: 1,
  types: ["CampaignCreated", "CampaignChanged", "CampaignEnded"],
  initial: () => ({ named: new Map() }),
  evolve(state, event) {
    evolveCampaigns(state, event);
    return state;
  },
};

function evolveCampaigns({ named }: Campaigns, event: Folded): void {
  const { position, time } = event;
  switch (event.type) {
    case "CampaignCreated":
    case "CampaignChanged": {
      const { data } = event;
      const { created_at = time, positions = [], ended_at = null } = named.get(data.name) ?? {};
      const changed = { changed: position, changed_at: time };
      named.set(data.name, { ...data, created_at, ...changed, positions: [...positions, position], ended_at });
      return;
    }
    case "CampaignEnded": {
      const campaign = named.get(event.data.name);
      const ended = campaign && { ...campaign, positions: [...campaign.positions, position], ended_at: time };
      if (ended !== undefined) named.set(ended.name, ended);
      return;
    }
    default:
  }
}

/** Maximum number of follow-ups after a first message. */
export const FOLLOW_UPS_MAX = 2;

/**
 * Returns how many campaigns this one follows up, directly or indirectly: 0 for a first message, 1 for its follow-up.
 * Infinity if the campaigns follow each other in a circle.
 */
export function countPredecessors({ named }: Campaigns, { name, audience: { messaged } }: CampaignDefinition): number {
  let before = 0;
  const met = new Set([name]);
  for (let next = messaged; next !== undefined; next = named.get(next)?.audience.messaged) {
    before++;
    if (met.has(next)) return Infinity;
    met.add(next);
  }
  return before;
}
