import { audienceSource, DEFAULT_CAMPAIGN, type CampaignDefinition } from "../../../events/campaign.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { FOLLOW_UPS_MAX, type Campaigns } from "../../../projections/campaigns.ts";
import { countReachable, outreachIn } from "../../../projections/contact-outreach-by-campaign.ts";
import { findPerson } from "../../../projections/contact-identity.ts";
import { toRecipient } from "../../../projections/contact-state.ts";
import { countCampaigns } from "../../../projections/message-totals.ts";
import { createResults, sumVariants } from "../../history/results.ts";
import { judgeTemplates } from "../../history/results-verdict.ts";
import { describeAudience } from "../../history/sentences/campaign.ts";
import type { PageMoment } from "../../projector/moment-of-console-page.ts";
import type { Template } from "../../template/template.ts";
import { toCampaignJson, type CampaignJson } from "./campaign-json.ts";
import { readCampaignText } from "./parse-campaign-text.ts";
import type { CampaignConfig } from "./check-campaign.ts";
import { countAudience } from "./count-audience.ts";
import { judgeKnown, type OutreachRules, type OutreachState } from "../decide.ts";
import { rulesForCampaign } from "../run-rules.ts";
import { describeOtherConsents, joinDetail } from "./recipient-refusal-rules.ts";

/** Sources that the form of an audience offers. */
export const AUDIENCE_SOURCES = audienceSource.anyOf.map((one) => one.const);

/** The settings that pages show and count campaigns with. */
export interface CampaignSettings {
  readonly config: CampaignConfig;
  /** Returns the rules by which a run of `default` would decide. */
  commonRules(): Promise<OutreachRules>;
}

/** A campaign as pages show it. */
export interface ShownCampaign extends CampaignJson {
  readonly isDefault: boolean;
  /**
   * Minimum number of days between two messages to a recipient that the campaign itself requires; undefined if that of
   * the settings applies.
   */
  readonly ownGapDays: number | undefined;
  /** The audience in words, such as `recipients with the basis opt in`. */
  readonly who: string;
  /** Free name for a follow-up of the campaign. Undefined if its chain has no place for one more. */
  readonly followUpName: string | undefined;
}

/** Returns the names of the campaigns for which a run may start: `default`, and those that no operator has ended. */
export function listOpenCampaigns({ named }: Campaigns): readonly string[] {
  return [DEFAULT_CAMPAIGN, ...[...named.values()].filter(({ ended_at }) => ended_at === null).map(({ name }) => name)];
}

function toShown(campaigns: Campaigns, { config }: CampaignSettings, name: string): ShownCampaign {
  const found = campaigns.named.get(name);
  const campaign = toCampaignJson(campaigns, config, found);
  const who = describeAudience(campaign.audience);
  const followUpName = campaign.follow_up < FOLLOW_UPS_MAX ? chooseFollowUpName(campaigns, name) : undefined;
  return { ...campaign, isDefault: name === DEFAULT_CAMPAIGN, ownGapDays: found?.gap_days, who, followUpName };
}

/** Maximum length of a campaign's name, in characters. */
const NAME_MAX = 40;

/** Returns `NAME-follow-up`, or the first `NAME-follow-up-2`, `-3` … that no campaign has. */
function chooseFollowUpName({ named }: Campaigns, name: string): string {
  const base = name.replace(/-follow-up(-\d+)?$/, "");
  for (let number = 1; ; number++) {
    const end = number === 1 ? "-follow-up" : `-follow-up-${number}`;
    const free = base.slice(0, NAME_MAX - end.length) + end;
    if (!named.has(free)) return free;
  }
}

/** Reads all campaigns with the number of messages that each has sent. */
export function readCampaigns({ state }: PageMoment<"campaigns" | "stats">, settings: CampaignSettings) {
  const campaigns = state("campaigns");
  const sent = new Map(countCampaigns(state("stats")).map((counts) => [counts.campaign, counts.sent]));
  return [DEFAULT_CAMPAIGN, ...campaigns.named.keys()].map((name) => {
    return { ...toShown(campaigns, settings, name), sent: sent.get(name) ?? 0 };
  });
}

/** Maximum number of runs on a campaign's page; the newest ones are listed. */
const RUNS_SHOWN = 20;

type CampaignMoment = PageMoment<
  "account" | "campaigns" | "contacts" | "conversions" | "links" | "quota" | "results" | "run" | "runs" | "visits"
>;

/** Reads one campaign: its audience as counted now, its runs and its results. Undefined if no campaign has the name. */
export async function readCampaign(moment: CampaignMoment, settings: CampaignSettings, name: string) {
  const { state } = moment;
  const campaigns = state("campaigns");
  if (name !== DEFAULT_CAMPAIGN && !campaigns.named.has(name)) return undefined;
  const campaign = toShown(campaigns, settings, name);
  const runs = [...state("runs").started].filter(
    ([, run]) => !run.dry_run && (run.campaign ?? DEFAULT_CAMPAIGN) === name,
  );
  const rules = rulesForCampaign(await settings.commonRules(), campaigns, name);
  const always = { from: undefined, to: undefined };
  const [conversions, results, visits] = [state("conversions"), state("results"), state("visits")];
  const sums = await createResults({ conversions, results, runs: state("runs"), visits }, "campaign", always);
  const variants = (await sumVariants(results, always)).filter(({ group }) => group.template === rules.template.id);
  const countPeopleLeft = () => countReachable(state("contacts"), rules);
  return {
    campaign,
    names: [DEFAULT_CAMPAIGN, ...campaigns.named.keys()],
    count: await countAudience(readStates(moment), campaign.audience, rules),
    runs: runs.slice(-RUNS_SHOWN).toReversed(),
    runCount: runs.length,
    results: sums.rows.find(({ group }) => group.campaign === name)?.figures,
    /** Comparison of the variants that the campaign sends now; empty if it has one variant. */
    verdicts: judgeTemplates(variants, () => ({ dailyLimit: rules.dailyLimit, countPeopleLeft })),
  };
}

/**
 * A message, and where its whole text is shown: on the page of the campaign that has this text now or, for an earlier
 * text, in the event that created or changed the campaign.
 */
export type FoundMessage = { readonly template: Template } & (
  { readonly campaign: string } | { readonly position: number }
);

/** Finds the messages with these ids in the settings, the campaigns and their earlier texts. */
export async function findMessages(
  { state, store, position: to }: PageMoment<"campaigns">,
  { config: { links, outreach } }: CampaignSettings,
  ids: readonly (string | null)[],
): Promise<ReadonlyMap<string | null, FoundMessage>> {
  const parse = (definition: CampaignDefinition) =>
    readCampaignText(definition, { linkBase: links.base, optOutBase: outreach.optOutBase }).template;
  const sent = [...state("campaigns").named.values()].map((one) => ({ template: parse(one), campaign: one.name }));
  const { template: own } = outreach;
  if (own !== undefined) sent.push({ template: own, campaign: DEFAULT_CAMPAIGN });
  const found = new Map<string | null, FoundMessage>(sent.map((one) => [one.template.id, one]));
  if (ids.every((id) => found.has(id))) return found;
  for await (const event of store.read({ types: ["CampaignCreated", "CampaignChanged"], to })) {
    if (event.type !== "CampaignCreated" && event.type !== "CampaignChanged") continue;
    const template = parse(event.data);
    if (!found.has(template.id)) found.set(template.id, { template, position: event.position });
  }
  return found;
}

type RuledMoment = PageMoment<"account" | "campaigns" | "contacts" | "links" | "quota" | "run">;

function readStates({ state, now }: RuledMoment): OutreachState {
  const [account, campaigns, contacts] = [state("account"), state("campaigns"), state("contacts")];
  return { account, campaigns, contacts, links: state("links"), quota: state("quota"), run: state("run"), ms: now };
}

/**
 * Reads what a recipient got of each campaign, and why a run of it would write to them now or not. Empty if the log has
 * no campaign but `default`.
 */
export async function readRecipientCampaigns(moment: RuledMoment, settings: CampaignSettings, recipient: Recipient) {
  const { named } = moment.state("campaigns");
  const states = readStates(moment);
  const contact = findPerson(states.contacts, recipient);
  if (named.size === 0 || contact === undefined) return [];
  const common = await settings.commonRules();
  return [DEFAULT_CAMPAIGN, ...named.keys()].map((name) => {
    const { status = "open", attempted_at, variant, replied = false } = outreachIn(contact, name) ?? {};
    const got = { name, status, attempted_at, variant, replied };
    if (named.get(name)?.ended_at != null) return { ...got, next: "no: it has ended" };
    const rules = rulesForCampaign(common, states.campaigns, name);
    const verdict = judgeKnown(states, rules, toRecipient(contact), undefined, contact);
    return { ...got, next: describeNext(verdict, rules, describeOtherConsents(contact, rules)) };
  });
}

function describeNext(
  verdict: ReturnType<typeof judgeKnown>,
  { textFault }: OutreachRules,
  otherConsents: string | undefined,
): string {
  if (textFault !== undefined) return `no: its text cannot be sent (${textFault})`;
  if (verdict.verdict === "ask") return "possible, unless X refuses";
  if (verdict.reason === "already_contacted") return "no: one message of each campaign";
  const own = "detail" in verdict ? verdict.detail?.replaceAll("_", " ") : undefined;
  const detail = joinDetail(verdict.reason, own, otherConsents);
  return `no: ${verdict.reason.replaceAll("_", " ")}${detail === undefined ? "" : ` (${detail})`}`;
}
