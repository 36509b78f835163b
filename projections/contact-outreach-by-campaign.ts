import { DEFAULT_CAMPAIGN } from "../events/campaign.ts";
import type { SkipReason } from "../events/outreach.ts";
import { type Consent, consentFor, hasEvidence, NO_CONSENT } from "./consent.ts";
import type { CampaignOutreach, Contact, Contacts, ContactStatus } from "./contact-state.ts";

/** Members of {@link CampaignOutreach} that may be absent. */
const OPTIONAL = ["message_id", "seen_at", "variant", "attempted_at", "own_links", "follows"] as const;

/** Returns the outreach to a contact in a campaign; undefined if the log holds none. */
export function outreachIn(contact: Contact | undefined, campaign = DEFAULT_CAMPAIGN): CampaignOutreach | undefined {
  if (contact === undefined || (contact.campaign ?? DEFAULT_CAMPAIGN) === campaign) return contact;
  const { campaigns } = contact;
  return campaigns !== undefined && Object.hasOwn(campaigns, campaign) ? campaigns[campaign] : undefined;
}

/**
 * Returns the campaigns in which a contact has outreach: pairs of a campaign's name and the outreach to the contact in
 * it.
 */
export function outreachByCampaign(contact: Contact): readonly (readonly [campaign: string, CampaignOutreach])[] {
  const { campaign = DEFAULT_CAMPAIGN, campaigns } = contact;
  return campaigns === undefined ? [[campaign, contact]] : [[campaign, contact], ...Object.entries(campaigns)];
}

/** A campaign, and the consent that its messages need. */
export interface ReachRules {
  /** Undefined if the campaign is `default`. */
  readonly campaign?: string | undefined;
  readonly topic?: string | undefined;
  readonly requireConsent: boolean | "evidence";
}

/**
 * Counts the contacts that a run of the campaign would look up at the network. The log does not rule these contacts
 * out; only the network still can.
 */
export function countReachable(contacts: Contacts, rules: ReachRules): number {
  return countReachableEach(contacts, [rules])[0]!;
}

/** Counts, for each campaign, the contacts that a run of it would look up, in one pass over all contacts. */
export function countReachableEach({ people }: Contacts, campaigns: readonly ReachRules[]): number[] {
  const counts = campaigns.map(() => 0);
  for (const contact of people.values()) {
    if (!isWritable(contact)) continue;
    for (let at = 0; at < campaigns.length; at++) {
      const rules = campaigns[at]!;
      if ((outreachIn(contact, rules.campaign)?.status ?? "open") === "open" && hasConsent(contact, rules))
        counts[at]!++;
    }
  }
  return counts;
}

/**
 * Counts the contacts that a run of some campaign may look up. Leaves out those that no campaign may write to:
 * suppressed, on hold, or unreachable.
 */
export function countWritable({ people }: Contacts): number {
  let count = 0;
  for (const contact of people.values()) if (isWritable(contact)) count++;
  return count;
}

function isWritable(contact: Contact): boolean {
  return !contact.suppressed && !contact.held && findUnreachable(contact) === undefined;
}

function hasConsent(contact: Contact, rules: ReachRules): boolean {
  const consent = consentForCampaign(contact, rules);
  if (needsEvidence(rules)) return hasEvidence(consent);
  return !rules.requireConsent || consent.basis !== "none";
}

/**
 * True if the campaign's messages need a consent with date and source. Every campaign but `default` needs one;
 * `default` does if the settings require it.
 */
export function needsEvidence({ campaign, requireConsent }: ReachRules): boolean {
  return campaign !== undefined || requireConsent === "evidence";
}

/** Returns the recipient's consent for a campaign: one that names the campaign or its topic, else one that names none. */
export function consentForCampaign(
  contact: Contact | undefined,
  { campaign = DEFAULT_CAMPAIGN, topic }: Pick<ReachRules, "campaign" | "topic">,
): Consent {
  return consentFor(contact ?? NO_CONSENT, [campaign, topic]);
}

/** Skip reasons which mean that the network said in an earlier look-up that we cannot write to the recipient. */
const UNREACHABLE: readonly SkipReason[] = ["cannot_receive_dm", "protected"];

/** Returns why an earlier look-up showed that we cannot write to the contact; undefined if none did. */
export function findUnreachable(contact: Contact | undefined): SkipReason | undefined {
  if (contact?.campaigns === undefined) return contact?.skipped.find((reason) => UNREACHABLE.includes(reason));
  return UNREACHABLE.find((reason) => outreachByCampaign(contact).some(([, { skipped }]) => skipped.includes(reason)));
}

/** Returns the time of the newest message that may have reached the contact, ISO 8601, of all campaigns but `except`. */
export function newestAttempt(contact: Contact | undefined, except?: string): string | undefined {
  if (contact?.campaigns === undefined) {
    return contact === undefined || (contact.campaign ?? DEFAULT_CAMPAIGN) === except
      ? undefined
      : contact.attempted_at;
  }
  return outreachByCampaign(contact).reduce<string | undefined>((newest, [campaign, { attempted_at: at }]) => {
    return campaign === except || at === undefined || (newest !== undefined && newest >= at) ? newest : at;
  }, undefined);
}

/**
 * True if the recipient wrote after the campaign's message, or if a reply after that message put the recipient on hold.
 */
export function hasAnswered({ held_at }: Contact, { replied, attempted_at }: CampaignOutreach): boolean {
  return replied || (held_at !== undefined && attempted_at !== undefined && held_at >= attempted_at);
}

/**
 * Changes the outreach to a contact in a campaign. The newest attempt's campaign is stored in the contact itself and
 * changes in place; for any other campaign, a changed copy replaces the object in `contact.campaigns`.
 */
export function changeOutreach(
  contact: Contact,
  campaign: string | undefined,
  change: (outreach: CampaignOutreach) => void,
): void {
  const own = outreachIn(contact, campaign);
  if (own === contact) return change(contact);
  const copy = own === undefined ? newOutreach() : { ...own };
  change(copy);
  contact.campaigns = { ...contact.campaigns, [campaign ?? DEFAULT_CAMPAIGN]: copy };
}

/** Changes the outreach to a contact in all campaigns. */
export function changeAll(contact: Contact, change: (outreach: CampaignOutreach) => void): void {
  if (contact.campaigns === undefined) return change(contact);
  for (const [campaign] of outreachByCampaign(contact)) changeOutreach(contact, campaign, change);
}

/**
 * Makes `campaign` the campaign of the newest attempt. Its outreach moves into the contact itself; the outreach that
 * was there moves to `contact.campaigns`.
 */
export function turnToCampaign(contact: Contact, campaign = DEFAULT_CAMPAIGN): void {
  const { campaign: before = DEFAULT_CAMPAIGN } = contact;
  if (before === campaign) return;
  const own = outreachIn(contact, campaign) ?? newOutreach();
  const all = { ...contact.campaigns, ...(isUntouched(contact) ? {} : { [before]: pick(contact) }) };
  place(contact, campaign, own, Object.fromEntries(Object.entries(all).filter(([name]) => name !== campaign)));
}

/**
 * Merges, for each campaign, the outreach in two contact entries of one recipient. Anything that forbids a message
 * stays.
 */
export function uniteCampaigns(into: Contact, one: Contact, other: Contact): void {
  if ([one, other].every(({ campaign, campaigns }) => campaign === undefined && campaigns === undefined)) return;
  const united: Record<string, CampaignOutreach> = {};
  for (const [campaign, outreach] of [one, other].flatMap(outreachByCampaign)) {
    const before = Object.hasOwn(united, campaign) ? united[campaign] : undefined;
    // For a contact's newest campaign, `outreach` is the whole contact. Only the members about messages are copied
    // here, because the caller of this function has already merged the other members.
    const own = pick(outreach);
    united[campaign] = before === undefined ? own : uniteOutreach(before, own);
  }
  const times = Object.entries(united).map(([campaign, { attempted_at = "" }]) => ({ campaign, attempted_at }));
  const newest = times.reduce((best, next) => (next.attempted_at > best.attempted_at ? next : best));
  const { [newest.campaign]: own, ...others } = united;
  const kept = Object.entries(others).filter(([, outreach]) => !isUntouched(outreach));
  place(into, newest.campaign, own!, Object.fromEntries(kept));
}

/** Statuses in ascending strictness. If two entries turn out to be one recipient, the stricter status counts. */
const STRICTNESS: readonly ContactStatus[] = ["open", "failed", "attempted", "in_doubt", "sent"];

/** Returns the outreach in one campaign of two entries that are one recipient. */
export function uniteOutreach<Outreach extends CampaignOutreach>(one: Outreach, other: Outreach): Outreach {
  return {
    ...other,
    // If `one` was rewound to an earlier position of the log, members that were absent then have the value undefined.
    // Such a member must not overwrite the value in `other`.
    ...(Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined)) as unknown as Outreach),
    status: STRICTNESS.indexOf(other.status) > STRICTNESS.indexOf(one.status) ? other.status : one.status,
    replied: one.replied || other.replied,
    again: one.again || other.again,
    skipped: [...new Set([...one.skipped, ...other.skipped])],
  };
}

function newOutreach(): CampaignOutreach {
  return { status: "open", replied: false, again: false, skipped: [] };
}

function isUntouched({ status, again, skipped, variant }: CampaignOutreach): boolean {
  return status === "open" && !again && skipped.length === 0 && variant === undefined;
}

function pick(outreach: CampaignOutreach): CampaignOutreach {
  const { status, replied, again, skipped } = outreach;
  const own: Record<string, unknown> = { status, replied, again, skipped };
  for (const member of OPTIONAL) if (outreach[member] !== undefined) own[member] = outreach[member];
  return own as unknown as CampaignOutreach;
}

function place(
  contact: Contact,
  campaign: string,
  outreach: CampaignOutreach,
  others: Readonly<Record<string, CampaignOutreach>>,
): void {
  for (const member of OPTIONAL) delete contact[member];
  Object.assign(contact, outreach);
  if (campaign === DEFAULT_CAMPAIGN) delete contact.campaign;
  else contact.campaign = campaign;
  if (Object.keys(others).length === 0) delete contact.campaigns;
  else contact.campaigns = others;
}

/**
 * True if the network refused the recipient once and a retry is allowed. Such recipients come last, so as not to delay
 * all others.
 */
export function isTriedLast(contact: Contact, campaign?: string): boolean {
  return contact.refused_after !== undefined && outreachIn(contact, campaign)?.again === true;
}
