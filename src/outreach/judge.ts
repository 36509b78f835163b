import type { DataOf } from "../../events/catalog.ts";
import type { Recipient, SkipReason } from "../../events/outreach.ts";
import type { Account } from "../../projections/account.ts";
import { findPerson, isTriedLast, type Contact, type Contacts } from "../../projections/contacts.ts";
import type { Quota } from "../../projections/quota.ts";
import type { Run } from "../../projections/run.ts";
import type { SocialUser } from "../networks/network.ts";
import { render, renderAll, type MessageRecipient, type Rendered, type Template } from "../template/template.ts";

/** What a decision looks at: projections of one position of the log. */
export interface OutreachState {
  readonly run: Run;
  readonly quota: Quota;
  readonly contacts: Contacts;
  readonly account: Account;
}

/** What the operator wants. */
export interface OutreachRules {
  readonly template: Template;
  readonly requireConsent: boolean;
  readonly dailyLimit: number;
  /** Keyed hashes of what is known of a recipient, as suppressions keep them. */
  readonly hashes: (recipient: Recipient) => readonly string[];
  /** Whether the keys of what is known of a recipient were deleted: which holds where a restored log lacks it too. */
  readonly isForgotten: (recipient: Recipient) => boolean;
}

/** Why a recipient gets no message. `pass`: the log holds it already. */
export type Refusal =
  | {
      readonly verdict: "skip";
      readonly reason: SkipReason;
      readonly detail?: string;
      readonly found?: FoundMessage;
    }
  | { readonly verdict: "pass" };

/** A message of ours that they have, and of which the log does not know. */
export type FoundMessage = NonNullable<DataOf<"DirectMessageSkipped">["found"]>;

/** `ask`: nothing speaks against a message yet, so the network is worth asking. */
export type KnownVerdict = Refusal | { readonly verdict: "ask" };

export type Verdict =
  | Refusal
  | {
      readonly verdict: "write";
      readonly text: string;
      readonly variant: string;
    };

/** Whether the recipient's turn comes with the last source only. */
export function isHeldBack(
  { contacts }: OutreachState,
  source: { readonly last?: true },
  recipient: Recipient,
): boolean {
  const contact = findPerson(contacts, recipient);
  return source.last !== true && contact !== undefined && isTriedLast(contact);
}

/**
 * What can be said of a recipient before the network is asked: asking costs money. `user`: what it said of them just now,
 * where their source asked it.
 */
export function judgeKnown(
  state: OutreachState,
  rules: OutreachRules,
  recipient: Recipient,
  user?: SocialUser,
): KnownVerdict {
  const refusal = refuse(state, rules, recipient);
  if (refusal !== undefined) return refusal;
  const rendered = compose(rules.template, findPerson(state.contacts, recipient), recipient);
  if (!rendered.ok) {
    if (rendered.reason === "too_long") return tooLong(rendered.length);
    // The network knows these two.
    const missing = rendered.missing.filter((field) => field !== "name" && field !== "username");
    if (missing.length > 0) return missingFields(missing);
  }
  // Who was closed to us would be asked about in every run, for money; a new import has them asked about again.
  const closed = user === undefined ? recordedAsClosed(state, recipient) : undefined;
  return closed === undefined ? { verdict: "ask" } : { verdict: "skip", reason: closed };
}

/** What is to be done about a recipient as the network shows them now. */
export function judgeUser(state: OutreachState, rules: OutreachRules, user: SocialUser): Verdict {
  const refusal = refuse(state, rules, user);
  if (refusal !== undefined) return refusal;
  if (user.protected === true && user.receivesOurDm !== true) return { verdict: "skip", reason: "protected" };
  if (user.receivesOurDm === false) return { verdict: "skip", reason: "cannot_receive_dm" };
  const rendered = compose(rules.template, findPerson(state.contacts, user), user);
  if (!rendered.ok) return rendered.reason === "too_long" ? tooLong(rendered.length) : missingFields(rendered.missing);
  return { verdict: "write", text: rendered.text, variant: rendered.variant };
}

/** The reason why they take no messages from us, where the network gave one before. */
function recordedAsClosed({ contacts }: OutreachState, recipient: Recipient): SkipReason | undefined {
  return findPerson(contacts, recipient)?.skipped.find(
    (reason) => reason === "cannot_receive_dm" || reason === "protected",
  );
}

/** A skip is recorded once per recipient and reason. */
export function isSkipRecorded(state: OutreachState, recipient: Recipient, reason: SkipReason): boolean {
  return findPerson(state.contacts, recipient)?.skipped.includes(reason) ?? false;
}

/** True if the recipient opted out, or an operator suppressed them, under any of their names. */
export function isSuppressed(
  { contacts }: OutreachState,
  { hashes, isForgotten }: OutreachRules,
  recipient: Recipient,
): boolean {
  const contact = findPerson(contacts, recipient);
  if (contact?.suppressed === true) return true;
  const names = contact === undefined ? [recipient] : [recipient, contact];
  if (contacts.hashes.size > 0 && names.flatMap(hashes).some((hash) => contacts.hashes.has(hash))) return true;
  return isForgotten(recipient);
}

/** What every variant of the template says to one recipient; those that lack a field say nothing. */
export function previewVariants(
  state: OutreachState,
  { template }: OutreachRules,
  recipient: Recipient & { name?: string },
): readonly { readonly variant: string; readonly text: string }[] {
  const known = messageRecipient(findPerson(state.contacts, recipient), recipient);
  return renderAll(template, known).flatMap(({ variant, rendered }) =>
    rendered.ok ? [{ variant, text: rendered.text }] : [],
  );
}

function refuse(state: OutreachState, rules: OutreachRules, recipient: Recipient): Refusal | undefined {
  const contact = findPerson(state.contacts, recipient);
  const self = state.account.user;
  if (self !== null && isSame(self, recipient)) return { verdict: "skip", reason: "self" };
  if (isSuppressed(state, rules, recipient)) return { verdict: "skip", reason: "suppressed" };
  if (contact?.status === "failed") return { verdict: "pass" };
  if (contact !== undefined && contact.status !== "open") return { verdict: "skip", reason: "already_contacted" };
  if (rules.requireConsent && (contact?.basis ?? "none") === "none") return { verdict: "skip", reason: "no_consent" };
  return undefined;
}

function missingFields(missing: readonly string[]): Refusal {
  return {
    verdict: "skip",
    reason: "missing_field",
    detail: missing.join(", "),
  };
}

/** The set of reasons is closed; what is missing here is a field short enough. */
function tooLong(length: number): Refusal {
  return { verdict: "skip", reason: "missing_field", detail: `the message would be ${length} characters long` };
}

function compose(template: Template, contact: Contact | undefined, recipient: Recipient & { name?: string }): Rendered {
  return render(template, messageRecipient(contact, recipient));
}

function messageRecipient(contact: Contact | undefined, recipient: Recipient & { name?: string }): MessageRecipient {
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
