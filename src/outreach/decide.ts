/**
 * Pure decisions of a run. Start at {@link decideTurn}: it judges one recipient with {@link judgeUser}, and `refuse`
 * below applies the rules. {@link judgeKnown} judges without the network, {@link decideStart} decides if a run may
 * start.
 */
import { DEFAULT_CAMPAIGN } from "../../events/campaign.ts";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { Recipient, RecipientSource, RunEnd, SkipReason } from "../../events/outreach.ts";
import type { Account } from "../../projections/account.ts";
import {
  consentForCampaign,
  findUnreachable,
  newestAttempt,
  outreachIn,
} from "../../projections/contact-outreach-by-campaign.ts";
import { entriesOf, findPerson } from "../../projections/contact-identity.ts";
import type { Contact, Contacts } from "../../projections/contact-state.ts";
import type { Quota } from "../../projections/quota.ts";
import { isRequested, isSameRecipient, type Run } from "../../projections/current-run.ts";
import { linksIn } from "../../projections/link-keys-and-text-links.ts";
import type { SendWindow } from "../config/send-window.ts";
import { addNewLinks, writeOwnCodes } from "../links/add-and-personalize-links.ts";
import type { NewEvent } from "../log/event-log.ts";
import type { AppendDecision } from "../log/decide-and-append.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { SocialUser } from "../networks/network.ts";
import type { FindLinkKeys } from "../privacy/person-keys.ts";
import { createDecision, isSuppressedByHash } from "../recipients/suppress.ts";
import type { ShortLink } from "../template/short-link.ts";
import {
  findRenderFault,
  render,
  toTemplateNames,
  withoutOptOut,
  type Rendered,
  type Template,
} from "../template/template.ts";
import {
  findCampaign,
  findFollowed,
  isEnded,
  refuseContacted,
  refuseFollowUp,
  refuseLeftOut,
  refuseTooSoon,
  refuseWithoutConsent,
  type CampaignRules,
  type CampaignState,
  type Refusal,
} from "./campaigns/recipient-refusal-rules.ts";
import { toNotReached } from "./requested/recipients-named-in-trigger.ts";
import { isSelected, reasonToEnd, remaining, type RunLimits } from "./quota-and-reasons-to-end-run.ts";
import { isClosedFor, refusesStart, type TurnMoment } from "./send-window.ts";

/** The input of a decision in a run: the states of projections, all at one position of the log. */
export interface OutreachState extends CampaignState {
  readonly run: Run;
  readonly quota: Quota;
  readonly contacts: Contacts;
  readonly account: Account;
}

export interface OutreachRules extends RunLimits, CampaignRules {
  readonly template: Template;
  /** Days and hours at which messages may be sent. Undefined: always. */
  readonly window: SendWindow | undefined;
  /** Returns keyed hashes of the recipient's known names, as suppressions keep them. */
  readonly hashes: (recipient: Recipient) => readonly string[];
  readonly findLinkKeys: FindLinkKeys;
  /** True if the keys of the recipient's data were deleted, even if a restored log lacks the erasure. */
  readonly isForgotten: (recipient: Recipient) => boolean;
}

export type Verdict =
  | Refusal
  | {
      readonly verdict: "write";
      readonly text: string;
      readonly variant: string;
      /** Links of the template that the rendered message contains. */
      readonly links: readonly ShortLink[];
      readonly contact: Contact | undefined;
    };

/** Fields that a list may lack, because the network provides them. */
const FROM_NETWORK: readonly string[] = ["name", "username"];

/** Judges a recipient without the network, which charges for answers. `ask`: only a look-up can tell more. */
export function judgeKnown(
  state: OutreachState,
  rules: OutreachRules,
  recipient: Recipient,
  user?: SocialUser,
  contact = findPerson(state.contacts, recipient),
): Refusal | { readonly verdict: "ask" } {
  const refusal = refuse(state, rules, recipient, contact);
  if (refusal !== undefined) return refusal;
  const fault = findRenderFault(rules.template, messageRecipient(contact, recipient), FROM_NETWORK);
  if (fault !== undefined) return refuseUnrendered(fault, fault.missing);
  // An earlier look-up may have shown that the network refuses messages to this recipient. Another look-up in each run
  // would cost money, so they are skipped until an import names them again.
  const reason = user === undefined ? findUnreachable(contact) : undefined;
  return reason === undefined ? { verdict: "ask" } : { verdict: "skip", reason };
}

/**
 * True if a refused recipient that a caller requested must be looked up first. Without an id and an imported row, the
 * log may know the recipient by an id that only the network can tell, and hold their consent there.
 */
export function needsLookUp(
  state: OutreachState,
  { campaign }: OutreachRules,
  refusal: Refusal,
  contact: Contact | undefined,
): boolean {
  if (contact?.id !== undefined || contact?.listed === true) return false;
  return refusal.reason === "no_consent" || (refusal.reason === "not_in_audience" && !isEnded(state, campaign));
}

/** Judges a recipient by the log, the rules and their present profile on the network. */
export function judgeUser(state: OutreachState, rules: OutreachRules, user: SocialUser): Verdict {
  const contact = findPerson(state.contacts, user);
  const refusal = refuse(state, rules, user, contact);
  if (refusal !== undefined) return refusal;
  if (user.protected === true && user.receivesOurDm !== true) return { verdict: "skip", reason: "protected" };
  if (user.receivesOurDm === false) return { verdict: "skip", reason: "cannot_receive_dm" };
  const rendered = render(rules.template, messageRecipient(contact, user));
  if (!rendered.ok) return refuseUnrendered(rendered, rendered.missing);
  const { text, variant, links } = rendered;
  return { verdict: "write", text, variant, links, contact };
}

/** True if the log already holds a skip of this recipient for this reason in the campaign; one of each is enough. */
export function isSkipRecorded(
  { contacts }: OutreachState,
  { campaign }: OutreachRules,
  recipient: Recipient,
  reason: SkipReason,
): boolean {
  return outreachIn(findPerson(contacts, recipient), campaign)?.skipped.includes(reason) ?? false;
}

/** True if the recipient opted out, was suppressed by an operator or was erased, under any of their names. */
export function isSuppressed(
  { contacts }: OutreachState,
  { hashes, isForgotten }: OutreachRules,
  recipient: Recipient,
  contact = findPerson(contacts, recipient),
): boolean {
  if (contact?.suppressed === true) return true;
  const names = contact === undefined || contact === recipient ? [recipient] : [recipient, contact];
  return isSuppressedByHash(contacts, names, hashes) || isForgotten(recipient);
}

/** Returns why the log or the rules forbid a message to the recipient; undefined if they allow it. */
function refuse(
  state: OutreachState,
  rules: OutreachRules,
  recipient: Recipient,
  contact: Contact | undefined,
): Refusal | undefined {
  const self = state.account.user;
  if (self !== null && isSameRecipient(self, recipient)) return { verdict: "skip", reason: "self" };
  if (isSuppressed(state, rules, recipient, contact)) return { verdict: "skip", reason: "suppressed" };
  // A held recipient gets no skip yet: an operator decides first if their reply was an opt-out.
  if (contact?.held === true) return { verdict: "pass", reason: "held" };
  return (
    refuseContacted(contact, rules) ??
    refuseLeftOut(state, contact, rules) ??
    refuseFollowUp(state, contact, rules) ??
    refuseWithoutConsent(contact, rules) ??
    refuseTooSoon(state, contact, rules)
  );
}

/** Returns the skip for a message that could not be rendered. A text that is too long is a `missing_field` too. */
function refuseUnrendered(rendered: Extract<Rendered, { ok: false }>, missing: readonly string[]): Refusal {
  const isTooLong = rendered.reason === "too_long";
  const detail = isTooLong ? `the message would be ${rendered.length} characters long` : missing.join(", ");
  return { verdict: "skip", reason: "missing_field", detail };
}

export function messageRecipient(contact: Contact | undefined, recipient: Recipient & { name?: string }) {
  const username = recipient.username ?? contact?.username ?? "";
  return {
    key: recipient.id ?? contact?.id ?? `@${username.toLowerCase()}`,
    username,
    name: contact?.name ?? recipient.name ?? "",
    fields: contact?.fields ?? {},
  };
}

/** Why no run of a campaign may start: the log holds none of that name, or an operator ended it. */
export type UnusableCampaign = "unknown_campaign" | "campaign_ended";

/** Decides if a run may start now: `start`, or the reason why not. */
export function decideStart(
  state: OutreachState,
  rules: OutreachRules,
  now: TurnMoment,
  dryRun: boolean,
): "start" | "running" | "not_authorized" | "daily_limit_reached" | "window_closed" | UnusableCampaign {
  if (!state.account.authorized) return "not_authorized";
  const campaign = findCampaign(state, rules.campaign);
  if (rules.campaign !== undefined && campaign === undefined) return "unknown_campaign";
  if (campaign !== undefined && campaign.ended_at !== null) return "campaign_ended";
  if (state.run.current !== null) return "running";
  // A dry run sends nothing and uses no place of the quota.
  if (dryRun) return "start";
  if (remaining(state, rules, now) === 0) return "daily_limit_reached";
  return refusesStart(rules.window, now) ? "window_closed" : "start";
}

/** One recipient's turn in a run: their profile on the network, and data for the event of the intent to write. */
export interface TurnCommand {
  readonly user: SocialUser;
  readonly attempt_id: string;
  readonly run_id: string;
  /**
   * Account that makes the run. If another account is linked during the run, that account sends none of the run's
   * messages.
   */
  readonly accountId: string | undefined;
  readonly now: TurnMoment;
  /** Source in which the run found the recipient; undefined if it retries a recipient of an earlier run. */
  readonly source?: RecipientSource | undefined;
  /** Secret from which the codes of the recipient's own links are derived; undefined if they get the shared ones. */
  readonly linkSecret?: string | undefined;
  /** Code of the recipient's page to opt out; undefined in a dry run, whose texts hold a placeholder. */
  readonly optOutCode?: string | undefined;
}

/** Refusal of a recipient's turn in a run: nothing is sent. */
export interface TurnRefused {
  /** Reason why the whole run ends with this turn; undefined if it continues with the next recipient. */
  readonly end: RunEnd | undefined;
  /**
   * True if the recipient's sending window is closed, so that the run gives them another turn later. Absent otherwise.
   */
  readonly isWindowClosed?: true;
}

/** Decides one recipient's turn: the intent to write, the skip, or a refusal. No event if the log holds the skip. */
export function decideTurn(
  state: OutreachState,
  rules: OutreachRules,
  { user, attempt_id, run_id, accountId, now, source, linkSecret, optOutCode }: TurnCommand,
): AppendDecision<TurnRefused> {
  if (state.account.user?.id !== accountId) return { refusal: { end: "not_authorized" } };
  const recipient = { id: user.id, username: user.username };
  const verdict = judgeUser(state, rules, user);
  if (verdict.verdict !== "write") return { events: newSkips(state, rules, run_id, [{ recipient, verdict }]) };
  const end = reasonToEnd(state, rules, now);
  if (end !== undefined) return { refusal: { end } };
  const { variant, contact } = verdict;
  const secret = contact?.tracking.status === "granted" ? linkSecret : undefined;
  const to = messageRecipient(contact, user);
  const personal = writeOwnCodes(rules.template, to, verdict, { secret, optOutCode });
  const from = sourceFor(source, contact);
  const { campaign } = rules;
  const { basis } = consentForCampaign(contact, rules);
  if (!isSelected(state.run.current, { variant, basis, source: from })) {
    const passed = { recipient, verdict: { verdict: "pass", reason: "left_out" } } as const;
    return { events: newSkips(state, rules, run_id, [passed]) };
  }
  if (isClosedFor(rules.window, contact, now)) return { refusal: { end: undefined, isWindowClosed: true } };
  const data = {
    attempt_id,
    run_id,
    recipient,
    text: verdict.text,
    // Lists the shared links even if the text has the recipient's own links in their place, because a click on an own
    // link counts as a click on the shared one.
    links: [...linksIn(withoutOptOut(rules.template, verdict.text))],
    ...personal,
    variant,
    ...toTemplateNames(rules.template),
    basis,
    ...omitUndefined({ source: from, account_id: accountId }),
    ...omitUndefined({ campaign, follows: findFollowed(state, contact, campaign) }),
    day: now.day,
    timezone: now.timezone,
    // The event keeps the run's own time of the decision where the log's time may differ from it: after an operator
    // corrected the log's time, or if the gap to an earlier message of another campaign was measured by the run's
    // clock.
    ...((state.quota.corrected !== null || newestAttempt(contact, campaign ?? DEFAULT_CAMPAIGN) !== undefined) && {
      decided_at: isoTime(now.ms),
    }),
  };
  const added = addNewLinks(state.links, verdict.links, { ...toTemplateNames(rules.template), variant });
  return { events: [...added, { type: "DirectMessageAttempted", data }] };
}

/** Returns the source in which a recipient was found; for one that a run retries, `list` if they were imported. */
export function sourceFor(source: RecipientSource | undefined, contact: Contact | undefined) {
  return source ?? (contact?.listed === true ? ("list" as const) : undefined);
}

export interface Refused {
  readonly recipient: Recipient;
  readonly verdict: Refusal;
}

/** Data of a skip event: a recipient who gets no message, and why. */
type Skip = Omit<DataOf<"DirectMessageSkipped">, "run_id">;

/** Turns refused recipients into skips, each once: a run may meet them by handle, by id and in several sources. */
export function toSkips({ contacts }: OutreachState, refused: readonly Refused[]): Skip[] {
  const noted = new Map<unknown, SkipReason[]>();
  return refused.flatMap(({ recipient, verdict }): Skip[] => {
    if (verdict.verdict === "pass") return [];
    const { reason, detail, found } = verdict;
    const entries = entriesOf(contacts, recipient);
    const keys = entries.length === 0 ? [recipient.id ?? recipient.username?.toLowerCase()] : entries;
    if (keys.some((key) => noted.get(key)?.includes(reason) === true)) return [];
    for (const key of keys) noted.getOrInsertComputed(key, () => []).push(reason);
    return [{ recipient, reason, ...omitUndefined({ detail, found }) }];
  });
}

/**
 * Returns the skips to record: those that the log lacks, and always those of requested recipients and of messages found
 * after a restore. Recipients suppressed by a hash get suppressed by their names too.
 */
export function newSkips(
  state: OutreachState,
  rules: OutreachRules,
  run_id: string,
  refused: readonly Refused[],
): NewEvent[] {
  const { hashes, campaign } = rules;
  const suppressed = refused.filter(({ verdict }) => verdict.verdict === "skip" && verdict.reason === "suppressed");
  const records = suppressed.map(({ recipient }) => ({ recipient, reason: "hash" as const }));
  const skips = toSkips(state, refused)
    .filter(({ recipient, reason, found }) => {
      const isDue = found !== undefined || isRequested(state.run.current, recipient);
      return isDue || !isSkipRecorded(state, rules, recipient, reason);
    })
    .map((skip): NewEvent => ({
      type: "DirectMessageSkipped",
      data: { run_id, ...omitUndefined({ campaign }), ...skip },
    }));
  const passed = toNotReached(state.run.current, run_id, refused);
  return [...createDecision(hashes)(state.contacts, records), ...skips, ...passed];
}
