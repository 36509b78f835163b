import type { Campaign, Campaigns } from "../../../projections/campaigns.ts";
import { FOLLOW_UPS_MAX } from "../../../projections/campaigns.ts";
import { DEFAULT_CAMPAIGN } from "../../../events/campaign.ts";
import type { DataOf } from "../../../events/event-types-and-codec.ts";
import type { SkipReason } from "../../../events/outreach.ts";
import {
  consentForCampaign,
  hasAnswered,
  needsEvidence,
  newestAttempt,
  outreachByCampaign,
  outreachIn,
} from "../../../projections/contact-outreach-by-campaign.ts";
import { isSameTopic } from "../../../projections/consent.ts";
import type { Contact } from "../../../projections/contact-state.ts";
import type { Links } from "../../../projections/links.ts";
import { DAY_MS, msOf } from "../../../projections/parse-log-times.ts";
import { isoTime } from "../../platform/clock-ids-and-timers.ts";
import { ALL_OF } from "../../platform/format-numbers-and-lists.ts";
import { describeMissingEvidence } from "../../recipients/record-consent.ts";
import { isFollowUp, matchesAudience } from "./audience.ts";

/**
 * Reason why a recipient gets no message. With `skip`, the run records it; with `pass` it records none, because the log
 * holds the reason already or because the run is not meant for this recipient.
 */
export type Refusal =
  | {
      readonly verdict: "skip";
      readonly reason: SkipReason;
      readonly detail?: string;
      /** Message of ours that the recipient has received but that is missing in the log, as after a restore. */
      readonly found?: NonNullable<DataOf<"DirectMessageSkipped">["found"]>;
    }
  | { readonly verdict: "pass"; readonly reason: "held" | "failed_before" | "left_out" }
  | { readonly verdict: "pass"; readonly reason: "not_in_audience"; readonly detail: string };

interface Definitions {
  readonly campaigns: Campaigns;
}

/** State that the rules of a campaign read. */
export interface CampaignState extends Definitions {
  readonly links: Links;
  /** Moment of the decision, ms since the epoch. */
  readonly ms: number;
}

export interface CampaignRules {
  /** Campaign of the run; absent if it is `default`. */
  readonly campaign?: string | undefined;
  /** Topic of the campaign: a consent that names topics must name this one. Absent if the campaign has no topic. */
  readonly topic?: string | undefined;
  /** Why the settings cannot send the campaign's text. Undefined if they can, or if the campaign is `default`. */
  readonly textFault?: string | undefined;
  /** Minimum number of days between two messages to one recipient, over all campaigns. */
  readonly gapDays: number;
  /** True if only recipients who consented may be contacted; `evidence`: only with a consent's date and source. */
  readonly requireConsent: boolean | "evidence";
}

/** Returns the campaign of a run as the log describes it; undefined for `default`, which the settings describe. */
export function findCampaign({ campaigns }: Definitions, campaign: string | undefined): Campaign | undefined {
  return campaign === undefined ? undefined : campaigns.named.get(campaign);
}

/** True if an operator ended the campaign. */
export function isEnded(state: Definitions, campaign: string | undefined): boolean {
  return typeof findCampaign(state, campaign)?.ended_at === "string";
}

/** Refuses a recipient who got the campaign's message, or whose message in it failed. */
export function refuseContacted(contact: Contact | undefined, { campaign }: CampaignRules): Refusal | undefined {
  const { status = "open" } = outreachIn(contact, campaign) ?? {};
  if (status === "open") return undefined;
  if (status === "failed") return { verdict: "pass", reason: "failed_before" };
  return { verdict: "skip", reason: "already_contacted" };
}

/**
 * Refuses a recipient who is not in the campaign's audience, by what the log knows of them. Refuses all recipients,
 * even during a run, once an operator has ended the campaign or given it a text that the settings cannot send.
 */
export function refuseLeftOut(state: CampaignState, contact: Contact | undefined, rules: CampaignRules) {
  const { campaign, textFault } = rules;
  if (campaign === undefined) return undefined;
  const definition = findCampaign(state, campaign);
  if (definition === undefined) return leftOut("unknown_campaign");
  if (isEnded(state, campaign)) return leftOut("campaign_ended");
  if (textFault !== undefined) return leftOut("unusable_text");
  const match = matchesAudience(definition.audience, contact, state, state.ms);
  if (match.matches) return undefined;
  return leftOut(match.from === undefined ? match.reason : `${match.reason} until ${match.from}`);
}

/**
 * Refuses a follow-up to a recipient who has answered a message of its chain, even if an operator has yet to read the
 * answer, or who has already received as many follow-ups of the chain as are allowed.
 */
export function refuseFollowUp(state: CampaignState, contact: Contact | undefined, { campaign }: CampaignRules) {
  const { messaged } = findFollowedAudience(state, campaign) ?? {};
  if (messaged === undefined || contact === undefined) return undefined;
  const first = findFirst(contact, messaged);
  const chain = outreachByCampaign(contact).filter(([name, { follows }]) => name === first || follows === first);
  // Without a variant, this message is known only from the network, which showed it after a restore. The log may then
  // lack the reply to it too.
  if (chain.some(([, { attempted_at, variant }]) => attempted_at !== undefined && variant === undefined)) {
    return leftOut("restored_without_message");
  }
  if (chain.some(([, outreach]) => hasAnswered(contact, outreach))) return leftOut("replied");
  const sent = chain.filter(
    ([name, { attempted_at }]) => ![first, campaign].includes(name) && attempted_at !== undefined,
  );
  return sent.length < FOLLOW_UPS_MAX ? undefined : leftOut(`${FOLLOW_UPS_MAX}_follow_ups`);
}

/**
 * Refuses a recipient without the consent that the campaign needs. Every campaign except `default` needs a consent with
 * date and source; `default` does if REQUIRE_CONSENT is `evidence`.
 */
export function refuseWithoutConsent(contact: Contact | undefined, rules: CampaignRules) {
  const consent = consentForCampaign(contact, rules);
  if (needsEvidence(rules)) {
    const detail = describeMissingEvidence(consent);
    return detail === undefined ? undefined : ({ verdict: "skip", reason: "no_consent", detail } as const);
  }
  const isMissing = rules.requireConsent && consent.basis === "none";
  return isMissing ? ({ verdict: "skip", reason: "no_consent" } as const) : undefined;
}

/**
 * Says for which other campaigns or topics a recipient without the campaign's consent gave one; undefined without any.
 * No event has these words, because the log encrypts the names of consents.
 */
export function describeOtherConsents(
  contact: Contact | undefined,
  { campaign = DEFAULT_CAMPAIGN, topic }: CampaignRules,
): string | undefined {
  const given = Object.entries(contact?.consents_for ?? {}).filter(([, { basis }]) => basis !== "none");
  const names = given.map(([name]) => name);
  const others = names.filter((name) => ![campaign, topic ?? campaign].some((own) => isSameTopic(own, name)));
  if (others.length === 0) return undefined;
  const named = ALL_OF.format(others.map((name) => JSON.stringify(name)));
  const about = topic === undefined ? "" : ` with the topic ${JSON.stringify(topic)}`;
  return `consented to ${named}, this campaign is ${JSON.stringify(campaign)}${about}`;
}

/** Returns the detail of a verdict and, if the campaign's consent is missing, which other consents there are. */
export function joinDetail(
  reason: string,
  detail: string | undefined,
  otherConsents: string | undefined,
): string | undefined {
  const others = reason === "no_consent" ? otherConsents : undefined;
  return [detail, others].filter((one) => one !== undefined).join("; ") || undefined;
}

/** Refuses a recipient who got a message of another campaign less than the gap ago. */
export function refuseTooSoon(
  state: CampaignState,
  contact: Contact | undefined,
  { campaign, gapDays }: CampaignRules,
) {
  const newest = newestAttempt(contact, campaign ?? DEFAULT_CAMPAIGN);
  if (newest === undefined) return undefined;
  const days = Math.max(gapDays, findCampaign(state, campaign)?.gap_days ?? 0);
  const from = msOf(newest) + days * DAY_MS;
  if (state.ms >= from) return undefined;
  return { verdict: "skip", reason: "too_soon", detail: `possible from ${isoTime(from)}` } as const;
}

/**
 * Returns the campaign whose message to the contact began the chain of follow-ups to which this campaign's message
 * belongs; undefined if this campaign is no follow-up.
 */
export function findFollowed(state: CampaignState, contact: Contact | undefined, campaign: string | undefined) {
  const { messaged } = findFollowedAudience(state, campaign) ?? {};
  return messaged === undefined ? undefined : findFirst(contact, messaged);
}

function findFollowedAudience(state: CampaignState, campaign: string | undefined) {
  const audience = findCampaign(state, campaign)?.audience;
  return audience !== undefined && isFollowUp(audience) ? audience : undefined;
}

function findFirst(contact: Contact | undefined, messaged: string): string {
  return outreachIn(contact, messaged)?.follows ?? messaged;
}

function leftOut(detail: string): Refusal {
  return { verdict: "pass", reason: "not_in_audience", detail };
}
