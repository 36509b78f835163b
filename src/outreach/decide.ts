import type { DataOf } from "../../events/catalog.ts";
import type {
  FailureReason,
  KnownRecipient,
  Recipient,
  RecipientSource,
  RunEnd,
  SkipReason,
} from "../../events/outreach.ts";
import type { Account } from "../../projections/account.ts";
import { NO_CONSENT } from "../../projections/consent.ts";
import { entriesOf, findPerson, type Contact, type Contacts } from "../../projections/contacts.ts";
import type { Quota } from "../../projections/quota.ts";
import type { Run } from "../../projections/run.ts";
import type { Links } from "../../projections/links.ts";
import { linksIn } from "../../projections/sent-links.ts";
import type { SendWindow } from "../config/send-window.ts";
import { addNewLinks, toPersonalLinks } from "../links/message-links.ts";
import type { NewEvent } from "../log/event-log.ts";
import type { AppendDecision } from "../log/decide-and-append.ts";
import { isoTime } from "../platform/clock.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { RateWindow, SendDmResult, SocialUser } from "../networks/network.ts";
import { describeMissingEvidence, type FindLinkKeys } from "../recipients/record-consent.ts";
import { createDecision, isSuppressedByHash } from "../recipients/suppress.ts";
import { createPersonalCode, type ShortLink } from "../template/short-link.ts";
import { render, toTemplateNames, type Rendered, type Template } from "../template/template.ts";
import { isSelected, reasonToEnd, remaining, type RunLimits } from "./run-limits.ts";
import { isClosed, isClosedFor, type TurnMoment } from "./send-window.ts";

/** The input of a decision: projections at one position of the log. */
export interface OutreachState {
  readonly run: Run;
  readonly quota: Quota;
  readonly contacts: Contacts;
  readonly account: Account;
  readonly links: Links;
}

export interface OutreachRules extends RunLimits {
  readonly template: Template;
  /** `evidence`: a consent counts only with its date and its source. */
  readonly requireConsent: boolean | "evidence";
  /** When messages may be sent. Undefined: always. */
  readonly window: SendWindow | undefined;
  /** Returns keyed hashes of the recipient's known names, as suppressions keep them. */
  readonly hashes: (recipient: Recipient) => readonly string[];
  readonly findLinkKeys: FindLinkKeys;
  /** True if the keys of the recipient's data were deleted, even if a restored log lacks the erasure. */
  readonly isForgotten: (recipient: Recipient) => boolean;
}

/** Why a recipient gets no message. `pass`: the log holds the reason already. */
export type Refusal =
  | {
      readonly verdict: "skip";
      readonly reason: SkipReason;
      readonly detail?: string;
      /** A message of ours that the recipient has and that the log does not know. */
      readonly found?: NonNullable<DataOf<"DirectMessageSkipped">["found"]>;
    }
  | { readonly verdict: "pass" };

export type Verdict =
  | Refusal
  | {
      readonly verdict: "write";
      readonly text: string;
      readonly variant: string;
      /** The links of the template that the text contains. */
      readonly links: readonly ShortLink[];
      readonly contact: Contact | undefined;
    };

/**
 * Judges a recipient before the network is asked, because asking costs money. `user`: the network's answer, if the
 * source has just asked it. `ask`: nothing rules out a message yet, so the network is worth asking.
 */
export function judgeKnown(
  state: OutreachState,
  rules: OutreachRules,
  recipient: Recipient,
  user?: SocialUser,
  contact = findPerson(state.contacts, recipient),
): Refusal | { readonly verdict: "ask" } {
  const refusal = refuse(state, rules, recipient, contact);
  if (refusal !== undefined) return refusal;
  const rendered = render(rules.template, messageRecipient(contact, recipient));
  if (!rendered.ok) {
    // The network provides these two.
    const missing = rendered.missing.filter((field) => field !== "name" && field !== "username");
    if (rendered.reason === "too_long" || missing.length > 0) return refuseUnrendered(rendered, missing);
  }
  // Recipients who were closed to us would cost a look-up in every run. A new import has them looked up again.
  const closed = user === undefined ? contact?.skipped.find((reason) => CLOSED.includes(reason)) : undefined;
  return closed === undefined ? { verdict: "ask" } : { verdict: "skip", reason: closed };
}

/** Decides about a recipient as the network shows them now. */
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

/** Reasons by which the network has said before that a recipient takes no messages from us. */
const CLOSED: readonly SkipReason[] = ["cannot_receive_dm", "protected"];

/** True if the log holds the skip already. It is recorded once per recipient and reason. */
export function isSkipRecorded(state: OutreachState, recipient: Recipient, reason: SkipReason): boolean {
  return findPerson(state.contacts, recipient)?.skipped.includes(reason) ?? false;
}

/** True if the recipient opted out, or an operator suppressed them, under any of their names. */
export function isSuppressed(
  { contacts }: OutreachState,
  { hashes, isForgotten }: OutreachRules,
  recipient: Recipient,
  contact = findPerson(contacts, recipient),
): boolean {
  if (contact?.suppressed === true) return true;
  const names = contact === undefined ? [recipient] : [recipient, contact];
  return isSuppressedByHash(contacts, names, hashes) || isForgotten(recipient);
}

/** Returns why a recipient gets no message, as far as the log and the rules tell; undefined if nothing speaks against it. */
function refuse(
  state: OutreachState,
  rules: OutreachRules,
  recipient: Recipient,
  contact: Contact | undefined,
): Refusal | undefined {
  const self = state.account.user;
  if (self !== null && isSame(self, recipient)) return { verdict: "skip", reason: "self" };
  if (isSuppressed(state, rules, recipient, contact)) return { verdict: "skip", reason: "suppressed" };
  // A held recipient is judged, and recorded, only after an operator has decided.
  if (contact?.held === true || contact?.status === "failed") return { verdict: "pass" };
  if (contact !== undefined && contact.status !== "open") return { verdict: "skip", reason: "already_contacted" };
  if (rules.requireConsent === "evidence") {
    const detail = describeMissingEvidence(contact ?? NO_CONSENT);
    return detail === undefined ? undefined : { verdict: "skip", reason: "no_consent", detail };
  }
  if (rules.requireConsent && (contact?.basis ?? "none") === "none") return { verdict: "skip", reason: "no_consent" };
  return undefined;
}

/** The set of reasons is closed. A message that is too long counts as lacking a field that is short enough. */
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

function isSame(self: { id: string; username: string }, recipient: Recipient): boolean {
  if (recipient.id !== undefined) return recipient.id === self.id;
  return recipient.username?.toLowerCase() === self.username.toLowerCase();
}

/** Decides if a run may start at a moment. */
export function decideStart(
  state: OutreachState,
  rules: OutreachRules,
  now: TurnMoment,
  dryRun: boolean,
): "start" | "running" | "not_authorized" | "daily_limit_reached" | "window_closed" {
  if (!state.account.authorized) return "not_authorized";
  if (state.run.current !== null) return "running";
  // A dry run sends nothing and uses no place of the quota.
  if (dryRun) return "start";
  if (remaining(state, rules, now) === 0) return "daily_limit_reached";
  const { window } = rules;
  // If each recipient has their own window, it may be open for some.
  const endsAtOnce = window?.whenClosed === "end" && window.zone === "quota" && isClosed(window, now.timezone, now);
  return endsAtOnce ? "window_closed" : "start";
}

/** Requests a stop of run `runId` (default: the current run). Decides nothing if a stop was requested before. */
export function decideStop(
  { run: { current } }: Pick<OutreachState, "run">,
  runId: string | undefined,
): AppendDecision<"not_in_progress"> {
  if (current === null || current.run_id !== (runId ?? current.run_id)) return { refusal: "not_in_progress" };
  if (current.stop_requested_at !== null) return { events: [] };
  return { events: [{ type: "RunStopRequested", data: { run_id: current.run_id } }] };
}

/** One recipient's turn: the user who is judged, and the data of the intent. */
export interface TurnCommand {
  readonly user: SocialUser;
  readonly attempt_id: string;
  readonly run_id: string;
  /** The account whose run it is. An account that is linked meanwhile gets none of it. */
  readonly accountId: string | undefined;
  readonly now: TurnMoment;
  /** Where the run found them; undefined if it retries an earlier one. */
  readonly source?: RecipientSource | undefined;
  /** The secret from which the codes of their own links are derived; undefined if they get the shared links. */
  readonly linkSecret?: string | undefined;
}

/** A turn in which nothing is sent. */
export interface TurnRefused {
  /** Why the run ends; undefined if only the turn ends. */
  readonly end: RunEnd | undefined;
  /** Present if the turn comes later, once the recipient's window is open. */
  readonly isClosed?: true;
}

/** Decides to record the intent to write to the recipient, or their skip; nothing if the log has that already. */
export function decideTurn(
  state: OutreachState,
  rules: OutreachRules,
  { user, attempt_id, run_id, accountId, now, source, linkSecret }: TurnCommand,
): AppendDecision<TurnRefused> {
  if (state.account.user?.id !== accountId) return { refusal: { end: "not_authorized" } };
  const recipient = { id: user.id, username: user.username };
  const verdict = judgeUser(state, rules, user);
  if (verdict.verdict !== "write") return { events: newSkips(state, rules, run_id, [{ recipient, verdict }]) };
  const end = reasonToEnd(state, rules, now);
  if (end !== undefined) return { refusal: { end } };
  const { variant, contact } = verdict;
  const personal = linkSecret === undefined ? undefined : writePersonalLinks(rules, verdict, user, linkSecret);
  const from = sourceFor(source, contact);
  const basis = contact?.basis ?? "none";
  if (!isSelected(state.run.current, { variant, basis, source: from })) return { events: [] };
  if (isClosedFor(rules.window, contact, now)) return { refusal: { end: undefined, isClosed: true } };
  const data = {
    attempt_id,
    run_id,
    recipient,
    text: verdict.text,
    // The shared links are listed even if the recipient has their own, because clicks on those count for the shared
    // ones.
    links: [...linksIn(verdict.text)],
    ...personal,
    variant,
    ...toTemplateNames(rules.template),
    basis,
    ...omitUndefined({ source: from, account_id: accountId }),
    day: now.day,
    timezone: now.timezone,
    // After such a correction the log's recorded time stands still, so the event states the time of the decision.
    ...(state.quota.corrected !== null && { decided_at: isoTime(now.ms) }),
  };
  const added = addNewLinks(state.links, verdict.links, { ...toTemplateNames(rules.template), variant });
  return { events: [...added, { type: "DirectMessageAttempted", data }] };
}

/** Returns where a recipient was found. `source` is undefined for retried recipients. */
export function sourceFor(source: RecipientSource | undefined, contact: Contact | undefined) {
  return source ?? (contact?.listed === true ? ("list" as const) : undefined);
}

type Write = Extract<Verdict, { verdict: "write" }>;

/** Returns text and links with the recipient's own codes; undefined without granted tracking, or without a link. */
function writePersonalLinks({ template }: OutreachRules, { contact, links }: Write, user: SocialUser, secret: string) {
  if (contact?.tracking.status !== "granted" || links.length === 0) return undefined;
  const rendered = render(template, messageRecipient(contact, user), (link) => createPersonalCode(secret, link));
  return rendered.ok ? { text: rendered.text, ...toPersonalLinks(links, secret) } : undefined;
}

export interface Refused {
  readonly recipient: Recipient;
  readonly verdict: Refusal;
}

/** The log's record of a recipient who gets no message. */
type Skip = Omit<DataOf<"DirectMessageSkipped">, "run_id">;

/** Returns each skip once, because recipients are met by handle and again by id, and in several sources. */
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
 * Returns the skips that the log does not hold yet. A found message closes the recipient, regardless of earlier
 * records. A recipient suppressed by the hash of one name is suppressed by all names, because they may change that one.
 */
export function newSkips(
  state: OutreachState,
  { hashes }: Pick<OutreachRules, "hashes">,
  run_id: string,
  refused: readonly Refused[],
): NewEvent[] {
  const suppressed = refused.filter(({ verdict }) => verdict.verdict === "skip" && verdict.reason === "suppressed");
  const records = suppressed.map(({ recipient }) => ({ recipient, reason: "hash" as const }));
  const skips = toSkips(state, refused)
    .filter(({ recipient, reason, found }) => found !== undefined || !isSkipRecorded(state, recipient, reason))
    .map((skip): NewEvent => ({ type: "DirectMessageSkipped", data: { run_id, ...skip } }));
  return [...createDecision(hashes)(state.contacts, records), ...skips];
}

/** Why a message whose intent was recorded is not sent. */
export type GiveUp =
  "stopped" | "day_over" | "window_closed" | "lease_lost" | "suppressed" | "held" | "other_account" | "clock_skewed";

/** The result of a send that has ended. `gave_up`: before the network was asked, or after a 429. */
export type SendDecided =
  | Exclude<SendDmResult, { outcome: "rate_limited" }>
  | { readonly outcome: "gave_up"; readonly why: GiveUp; readonly rate: RateWindow | undefined };

const GIVEN_UP: Readonly<Record<GiveUp, string>> = {
  stopped: "the run ended before the message went out",
  day_over: "the day ended before the message went out",
  window_closed: "the sending window closed before the message went out",
  lease_lost: "the lease for runs could not be confirmed in time",
  other_account: "another account was linked before the message went out",
  clock_skewed: "the clocks of the machine and of the log were too far apart before the message went out",
  suppressed: "the recipient was suppressed before the message went out",
  held: "the recipient's reply waits for an operator's decision",
};

export type OutcomeEvent = Extract<
  NewEvent,
  { type: "DirectMessageSent" | "DirectMessageFailed" | "DirectMessageInDoubt" }
>;

interface Decided {
  readonly newEvent: OutcomeEvent;
  /** Events that follow from it and are recorded with it. */
  readonly more?: readonly NewEvent[];
  readonly end?: RunEnd;
}

/**
 * Turns the result of a send into events. If this refusal counts against the account, `refusedBefore` returns the
 * recipients refused earlier for the same reason. They were not at fault, so a later run may retry them.
 */
export function decideSendOutcome(
  attempt: { attempt_id: string; run_id: string; recipient: KnownRecipient },
  result: SendDecided,
  refusedBefore: () => readonly Recipient[] | undefined,
  nextAt?: string,
): Decided {
  const failed = (reason: FailureReason, detail: string, retry: boolean): OutcomeEvent => ({
    type: "DirectMessageFailed",
    data: { ...attempt, reason, detail, frees_quota: true, retry },
  });
  switch (result.outcome) {
    case "sent": {
      const settled = { message_id: result.messageId, settled_by: "answer" } as const;
      const data = { ...attempt, ...settled, ...omitUndefined({ next_at: nextAt }) };
      return { newEvent: { type: "DirectMessageSent", data } };
    }
    case "in_doubt":
      return { newEvent: { type: "DirectMessageInDoubt", data: { ...attempt, detail: result.detail } } };
    case "recipient_closed":
    case "rejected":
      return { newEvent: failed(result.outcome, result.detail, false) };
    case "not_permitted": {
      const before = refusedBefore();
      if (before === undefined) return { newEvent: failed(result.outcome, result.detail, false) };
      const detail = `${result.detail}; ${before.length} other people were refused before, one after the other`;
      const more = before.map((recipient): NewEvent => {
        return { type: "RecipientRetryAllowed", data: { recipient, run_id: attempt.run_id } };
      });
      return { newEvent: failed("sender_restricted", detail, true), more, end: "sender_restricted" };
    }
    case "unreachable":
      return { newEvent: failed("unreachable", result.detail, true), end: "network_unavailable" };
    case "unauthorized":
      return {
        newEvent: failed("unauthorized", "the network no longer accepts the grant", true),
        end: "not_authorized",
      };
    case "gave_up": {
      const isUnwanted = result.why === "suppressed";
      return { newEvent: failed(isUnwanted ? "suppressed" : "withdrawn", GIVEN_UP[result.why], !isUnwanted) };
    }
    case "stopped":
      return { newEvent: failed(result.reason, result.detail, true), end: result.reason };
  }
}
