import { DEFAULT_CAMPAIGN } from "../../../events/campaign.ts";
import { recipientSource } from "../../../events/outreach.ts";
import type { Campaigns } from "../../../projections/campaigns.ts";
import { answerResults, type ResultsReader } from "../../history/results.operations.ts";
import { describeAudience } from "../../history/words/campaign.ts";
import type { PageMoment } from "../../projector/page-moments.ts";
import { toCampaignJson, type CampaignJson } from "./campaign-json.ts";
import { parseCampaignTemplate, type CampaignConfig } from "./change-campaign.ts";
import { countAudience, type AudienceCount } from "./count-audience.ts";
import type { OutreachRules } from "../decide.ts";
import { rulesForCampaign } from "../run-rules.ts";
import type { Template } from "../../template/template.ts";

/** Sources that the form of an audience offers. */
export const AUDIENCE_SOURCES = recipientSource.anyOf.map((one) => one.const);

/** The settings that pages show and count campaigns with. */
export interface CampaignSettings {
  readonly config: CampaignConfig;
  /** Returns the rules by which a run with this template would decide. */
  rulesWith(template: Template): Promise<OutreachRules>;
}

/** A campaign as pages show it. */
export interface ShownCampaign extends CampaignJson {
  readonly isDefault: boolean;
  /** The audience in words, such as `recipients with the basis opt in`. */
  readonly who: string;
}

/** Returns the names of the campaigns that a run can be of. */
export function listOpenCampaigns({ named }: Campaigns): readonly string[] {
  return [DEFAULT_CAMPAIGN, ...[...named.values()].filter(({ ended_at }) => ended_at === null).map(({ name }) => name)];
}

function toShown(campaigns: Campaigns, { config }: CampaignSettings, name: string): ShownCampaign {
  const campaign = toCampaignJson(campaigns, config, campaigns.named.get(name));
  return { ...campaign, isDefault: name === DEFAULT_CAMPAIGN, who: describeAudience(campaign.audience) };
}

/** Reads all campaigns with the number of messages that each has sent. */
export function readCampaigns({ state }: PageMoment<"campaigns" | "stats">, settings: CampaignSettings) {
  const campaigns = state("campaigns");
  const { campaigns: counts = new Map(), sent: all } = state("stats");
  const others = [...counts.values()].reduce((sum, { sent }) => sum + sent, 0);
  return [DEFAULT_CAMPAIGN, ...campaigns.named.keys()].map((name) => {
    const shown = toShown(campaigns, settings, name);
    return { ...shown, sent: shown.isDefault ? all - others : (counts.get(name)?.sent ?? 0) };
  });
}

/** Most runs of a campaign that its page lists, the newest. */
const RUNS_SHOWN = 20;

type CampaignMoment = PageMoment<
  "account" | "campaigns" | "contacts" | "conversions" | "links" | "quota" | "results" | "run" | "runs" | "visits"
>;

/** Reads one campaign: its audience as counted now, its runs and its results. Undefined if no campaign has the name. */
export async function readCampaign(
  moment: CampaignMoment & { readonly reader: ResultsReader },
  settings: CampaignSettings,
  name: string,
) {
  const { state } = moment;
  const campaigns = state("campaigns");
  if (name !== DEFAULT_CAMPAIGN && !campaigns.named.has(name)) return undefined;
  const campaign = toShown(campaigns, settings, name);
  const runs = [...state("runs").started].filter(
    ([, run]) => !run.dry_run && (run.campaign ?? DEFAULT_CAMPAIGN) === name,
  );
  const { rows } = await answerResults(moment.reader, { by: "campaign" });
  return {
    campaign,
    names: [DEFAULT_CAMPAIGN, ...campaigns.named.keys()],
    count: await countCampaignAudience(moment, settings, campaign),
    runs: runs.slice(-RUNS_SHOWN).toReversed(),
    runCount: runs.length,
    results: rows.find((row) => row.campaign === name),
  };
}

/** Counts the audience of a campaign by the rules of its runs. */
async function countCampaignAudience(
  { state, now }: CampaignMoment,
  { config, rulesWith }: CampaignSettings,
  { name, audience, isDefault }: ShownCampaign,
): Promise<AudienceCount> {
  const common = await rulesWith(config.outreach.template ?? parseCampaignTemplate(config, { name, text: "-" }));
  const rules = isDefault ? common : rulesForCampaign(common, state("campaigns"), name);
  const states = {
    account: state("account"),
    campaigns: state("campaigns"),
    contacts: state("contacts"),
    links: state("links"),
    quota: state("quota"),
    run: state("run"),
    ms: now,
  };
  return countAudience(states, audience, rules);
}
