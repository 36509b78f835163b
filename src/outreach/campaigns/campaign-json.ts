import { Type, type Static } from "@sinclair/typebox";
import { audience, DEFAULT_CAMPAIGN } from "../../../events/campaign.ts";
import { countPredecessors, type Campaign, type Campaigns } from "../../../projections/campaigns.ts";
import { count, named, orNull, text, time } from "../../platform/common-schemas.ts";
import { findTextFault, type CampaignConfig } from "./check-campaign.ts";

/** Schema of a campaign in answers. */
export const campaignJson = named(
  "Campaign",
  Type.Object({
    name: text("spring"),
    text: orNull(text("Hi {{name|there}}, the new list is out")),
    variants: Type.Array(text("A")),
    audience,
    follow_up: Type.Integer({ minimum: 0, maximum: 2, description: "Campaigns before it in its chain." }),
    gap_days: count,
    topic: orNull(text("news")),
    fault: Type.Union([text("line 1, column 1: {{optout}} needs PUBLIC_URL"), Type.Null()], {
      description: "Why no run of it can start: the present settings cannot send its text. Null if they can.",
    }),
    created_at: Type.Union([time, Type.Null()], { description: "Null for `default`, which the settings describe." }),
    changed_at: orNull(time),
    ended_at: orNull(time),
  }),
);
export type CampaignJson = Static<typeof campaignJson>;

/** Returns a campaign as answers show it. The campaign `default` gets its values from the settings. */
export function toCampaignJson(
  campaigns: Campaigns,
  config: CampaignConfig,
  campaign: Campaign | undefined,
): CampaignJson {
  const { outreach } = config;
  const gap = outreach.gapDays;
  if (campaign === undefined) {
    const { text: message = null, variants = [] } = outreach.template ?? {};
    const dates = { created_at: null, changed_at: null, ended_at: null };
    const labels = variants.map(({ label }) => label);
    const own = { name: DEFAULT_CAMPAIGN, text: message, variants: labels, audience: {}, topic: null, fault: null };
    return { ...own, follow_up: 0, gap_days: gap, ...dates };
  }
  const { name, text: message, audience, gap_days = gap, topic = null, created_at, changed_at, ended_at } = campaign;
  const variants = message.split(/^---[ \t]*$/m).map((_, at) => String.fromCharCode("A".charCodeAt(0) + at));
  const follow_up = countPredecessors(campaigns, campaign);
  const dates = { created_at, changed_at, ended_at };
  const fault = ended_at === null ? (findTextFault(config, campaign) ?? null) : null;
  const own = { name, text: message, variants, audience, topic, fault };
  return { ...own, follow_up, gap_days: Math.max(gap, gap_days), ...dates };
}
