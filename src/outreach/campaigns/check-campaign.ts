import { isDeepStrictEqual } from "node:util";
import { DEFAULT_CAMPAIGN, type Audience, type CampaignDefinition } from "../../../events/campaign.ts";
import { countPredecessors, FOLLOW_UPS_MAX, type Campaign, type Campaigns } from "../../../projections/campaigns.ts";
import { findSpelling } from "../../../projections/consent.ts";
import type { Contacts } from "../../../projections/contact-state.ts";
import { codeIn, type Links } from "../../../projections/links.ts";
import type { Config } from "../../config/config.ts";
import { countInWords } from "../../platform/format-numbers-and-lists.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { parseTimezone } from "../../platform/parse-timezone.ts";
import { warnOfSlips } from "../../template/warn-of-likely-mistakes.ts";
import { fieldName } from "../../template/normalize-field.ts";
import { missingPlaceholders, type Template } from "../../template/template.ts";
import { warnOfNoOptOut } from "../detect-opt-out-replies.ts";
import { ANY_LINK, parseFieldCondition } from "./audience.ts";
import { readCampaignText } from "./parse-campaign-text.ts";

/** Maximum number of campaigns in a log: each adds a row to pages and a label to metrics. */
export const CAMPAIGNS_MAX = 200;

/**
 * The settings with which a campaign is checked: its text, and its gap, the minimum number of days between a
 * recipient's previous message and one of this campaign.
 */
export interface CampaignConfig {
  readonly links: Config["links"];
  readonly outreach: Config["outreach"];
}

/** Returns why the settings cannot send a campaign's text; undefined if they can. */
export function findTextFault(
  { links, outreach }: CampaignConfig,
  campaign: { readonly name: string; readonly text: string },
): string | undefined {
  return readCampaignText(campaign, { linkBase: links.base, optOutBase: outreach.optOutBase }).textFault;
}

/** Returns warnings about a campaign's text, which an operator may have written so on purpose. */
export function listTextWarnings(
  { contacts }: CampaignStates,
  { links, outreach }: CampaignConfig,
  campaign: CampaignDefinition,
  typedTopic?: string,
): string[] {
  const { template } = readCampaignText(campaign, { linkBase: links.base, optOutBase: outreach.optOutBase });
  const optOut = warnOfNoOptOut({ template, stopWords: outreach.stopWords });
  return [
    ...warnOfSlips(campaign.text),
    ...warnOfMissingFields(template, contacts),
    ...(optOut === undefined ? [] : [optOut]),
    ...(typedTopic === undefined || [campaign.topic ?? "", ""].includes(typedTopic.trim())
      ? []
      : [`the topic is spelt ${JSON.stringify(campaign.topic)}, as in another campaign: case makes no other topic`]),
  ];
}

/** Returns a warning if the message needs fields that no imported recipient has, such as a misspelt one. */
export function warnOfMissingFields(template: Template, { people, fields }: Contacts) {
  const missing = people.size === 0 ? [] : missingPlaceholders(template, fields.keys());
  if (missing.length === 0) return [];
  return [`no imported recipient has ${missing.join(", ")}; import it or give a fallback {{field|text}}`];
}

export interface CampaignStates {
  readonly campaigns: Campaigns;
  readonly contacts: Contacts;
  readonly links: Links;
}

/**
 * Returns what is wrong with a campaign, and which member of its definition is wrong; undefined if it can be saved.
 * Pure.
 */
export function findCampaignFault(
  states: CampaignStates,
  config: CampaignConfig,
  definition: CampaignDefinition,
): { readonly member: string; readonly why: string } | undefined {
  const { name, gap_days } = definition;
  const least = config.outreach.gapDays;
  // A gap that the campaign already has may stay below CONTACT_GAP_DAYS, because an operator may have raised that
  // setting since.
  const isNew = gap_days !== states.campaigns.named.get(name)?.gap_days;
  if (gap_days !== undefined && isNew && gap_days < least)
    return { member: "gap_days", why: `the gap is below CONTACT_GAP_DAYS, ${countInWords(least, "day")}` };
  const textFault = findTextFault(config, definition);
  if (textFault !== undefined) return { member: "text", why: textFault };
  return findAudienceFault(states, definition.audience) ?? findChainFault(states.campaigns, definition);
}

/** True if the log has the campaign as the definition describes it. */
export function isUnchanged({ named }: Campaigns, definition: CampaignDefinition): boolean {
  const before = named.get(definition.name);
  if (before === undefined) return false;
  const { name, text, audience, gap_days, topic } = before;
  return isDeepStrictEqual({ ...definition }, { name, text, audience, ...omitUndefined({ gap_days, topic }) });
}

/** Returns what is wrong with a campaign's audience; undefined if nothing is. */
export function findAudienceFault(
  { campaigns, contacts, links }: CampaignStates,
  { fields = [], timezones = [], clicked, messaged, days, replied, failed }: Audience,
) {
  const known = new Set([...contacts.fields.keys()].map(fieldName));
  for (const { field, values } of fields.map(parseFieldCondition)) {
    if (field === "") return { member: "fields", why: "a condition names no field; write city=Rome, or city" };
    if (!known.has(field)) return { member: "fields", why: `no imported recipient has the field ${field}` };
    if (values?.some((value) => value.trim() === "") === true)
      return { member: "fields", why: `a value for ${field} is blank` };
  }
  const zone = timezones.find((name) => parseTimezone(name) !== name);
  if (zone !== undefined) {
    const spelt = parseTimezone(zone);
    const meant = spelt === undefined ? "" : `; it is spelt ${spelt}`;
    return { member: "timezones", why: `${zone} is no known time zone${meant}` };
  }
  if (clicked !== undefined && clicked !== ANY_LINK && !links.shared.has(codeIn(clicked)))
    return { member: "clicked", why: `the log has no link ${clicked}` };
  if (messaged === undefined && (days ?? replied ?? failed) !== undefined)
    return { member: "messaged", why: "days, replied and failed need messaged beside them" };
  if (messaged !== undefined && messaged !== DEFAULT_CAMPAIGN && !campaigns.named.has(messaged))
    return { member: "messaged", why: `there is no campaign ${JSON.stringify(messaged)}` };
  return undefined;
}

/** Returns what is wrong with the chain of follow-ups that the campaign would be in; undefined if nothing is. */
function findChainFault({ named }: Campaigns, definition: CampaignDefinition) {
  const after: Campaigns = { named: new Map(named) };
  after.named.set(definition.name, { ...NEW_CAMPAIGN, ...definition });
  const longest = Math.max(...[...after.named.values()].map((one) => countPredecessors(after, one)));
  if (longest <= FOLLOW_UPS_MAX) return undefined;
  const why = Number.isFinite(longest)
    ? `a chain has at most ${FOLLOW_UPS_MAX} follow-ups after a first message`
    : "the campaigns would follow each other in a circle";
  return { member: "messaged", why };
}

/** A campaign that is not in the log. */
export const NEW_CAMPAIGN: Campaign = {
  name: "",
  text: "-",
  audience: {},
  created_at: "",
  changed: 0,
  changed_at: "",
  positions: [],
  ended_at: null,
};

interface GapAndTopic {
  readonly gap_days?: number | undefined;
  readonly topic?: string | undefined;
}

/** Returns the gap and topic to save: what is not given stays, and a gap of 0 days or an empty topic removes it. */
export function readGapAndTopic(
  { named }: Campaigns,
  { gap_days, topic: typed }: GapAndTopic,
  before: GapAndTopic & { readonly name: string },
) {
  const topic = typed?.trim();
  const others = [...named.values()].filter(({ name }) => name !== before.name);
  const spellings = others.flatMap((other) => other.topic ?? []);
  return omitUndefined({
    gap_days: gap_days === 0 ? undefined : (gap_days ?? before.gap_days),
    // The first spelling stays, because topics that differ by case are one.
    topic: topic === "" ? undefined : topic === undefined ? before.topic : (findSpelling(spellings, topic) ?? topic),
  });
}
