import type { DataOf, Folded } from "../events/event-types-and-codec.ts";
import type { SkipReason } from "../events/outreach.ts";
import { type ConsentRecord, consentAfter, earlier, withoutStaleTracking } from "./consent.ts";
import {
  changeAll,
  changeOutreach,
  outreachByCampaign,
  outreachIn,
  turnToCampaign,
} from "./contact-outreach-by-campaign.ts";
import { type Change, noteChanges, replaceRefused } from "./contact-changes-to-rewind.ts";
import { countField, findContact, isUnnamed, meant, meet } from "./contact-identity.ts";
import { type CampaignOutreach, type Contact, type Contacts, isOwnRefusal, later } from "./contact-state.ts";
import type { Projection } from "./projection.ts";
import { FETCH_MS } from "./clicks-suspected-as-networks-own.ts";
import { msOf } from "./parse-log-times.ts";

export const contacts: Projection<Contacts> = {
  name: "contacts",
  version: 26,
  types: [
    "RecipientAdded",
    "ConsentRecorded",
    "RecipientSuppressed",
    "RecipientHeld",
    "RecipientReleased",
    "RecipientRetryAllowed",
    "DirectMessageReceived",
    "DirectMessagesSeen",
    "DirectMessageAttempted",
    "DirectMessageSent",
    "DirectMessageSkipped",
    "DirectMessageFailed",
    "DirectMessageInDoubt",
    "DryRunRecipientListed",
    "RecipientRequested",
    "RecipientNotReached",
    "DirectMessageLeft",
    "PersonalLinkClicked",
    "ConversionRecorded",
    "ConversionReversed",
    "PersonForgotten",
    "AccountUnlinked",
    "PersonalDataRead",
  ],
  initial: () => ({
    people: new Map(),
    ids: new Map(),
    handles: new Map(),
    former: new Map(),
    fields: new Map(),
    held: 0,
    hashes: new Map(),
    links: new Map(),
    merged: [],
    taken: [],
    refused: [],
    replaced: [],
    changed: { full: new Map(), open: { at: [], keys: [] } },
    rewinds_to: 0,
  }),
  evolve(state, event) {
    if (event.type === "PersonalDataRead") noteRead(state, event);
    else if (contacts.types.includes(event.type)) {
      const change: Change = { position: event.position, before: new Map() };
      evolveContact(state, event, change)?.positions.push(event.position);
      noteChanges(state, change);
    }
    return state;
  },
};

/**
 * Records in the contact that a caller read the recipient's data. A read creates no contact: the recipient is known
 * already, or was erased since.
 */
function noteRead(state: Contacts, { data, position }: Folded<"PersonalDataRead">): void {
  const contact = data.recipient && findContact(state, data.recipient);
  if (contact !== undefined) (contact.reads ??= []).push(position);
}

/** Folds an event into the contact that it is about, and returns that contact; undefined if there is none. */
function evolveContact(state: Contacts, event: Folded, change: Change): Contact | undefined {
  switch (event.type) {
    case "RecipientAdded":
      return add(state, event.data, change);
    case "ConsentRecorded":
      return recordConsent(meant(state, event.data.recipient, change), event.data);
    case "RecipientSuppressed":
      return suppress(state, event.data, change);
    case "RecipientHeld":
      return hold(state, event.data, change);
    case "RecipientReleased":
      return setHeld(state, meant(state, event.data.recipient, change), false);
    case "PersonForgotten":
      mark(state, event.data.hashes, change);
      return undefined;
    case "RecipientRetryAllowed":
      return allowRetry(meant(state, event.data.recipient, change), event.data);
    case "DirectMessageReceived":
      return receive(meet(state, event.data.recipient, change), event.data);
    case "DirectMessagesSeen": {
      const contact = meet(state, event.data.recipient, change);
      contact.seen_at = later(contact.seen_at, event.data.seen_at);
      return contact;
    }
    case "DirectMessageSkipped":
      return skip(meet(state, event.data.recipient, change), event.data);
    case "DryRunRecipientListed":
    case "RecipientRequested":
    case "RecipientNotReached":
      return isUnnamed(event.data.recipient) ? undefined : meet(state, event.data.recipient, change);
    case "DirectMessageAttempted": {
      const { recipient, personal_links = [] } = event.data;
      if (isUnnamed(recipient)) return undefined;
      for (const { code } of personal_links) state.links.set(code, recipient.id);
      return attempt(meet(state, recipient, change), event);
    }
    case "PersonalLinkClicked":
      return click(state, event, change);
    case "ConversionRecorded":
    case "ConversionReversed": {
      const id = state.links.get(event.data.code ?? "");
      return id === undefined ? undefined : findContact(state, { id });
    }
    case "DirectMessageSent":
      return take(state, meet(state, event.data.recipient, change), event, change);
    case "DirectMessageInDoubt":
      return doubt(meet(state, event.data.recipient, change), event);
    case "DirectMessageLeft":
      return meet(state, event.data.recipient, change);
    case "DirectMessageFailed":
      return fail(state, meet(state, event.data.recipient, change), event.data, change);
    case "AccountUnlinked":
      // The refusals concern the account that is unlinked now, so they must not count against the account that is
      // linked next.
      replaceRefused(state, [], change);
      return undefined;
    default:
      return undefined;
  }
}

function suppress(
  state: Contacts,
  { recipient, hashes = [] }: DataOf<"RecipientSuppressed">,
  change: Change,
): Contact | undefined {
  mark(state, hashes, change);
  if (recipient === undefined) return undefined;
  const contact = meant(state, recipient, change);
  contact.suppressed = true;
  return setHeld(state, contact, false);
}

function hold(
  state: Contacts,
  { recipient, received_at, reason }: DataOf<"RecipientHeld">,
  change: Change,
): Contact | undefined {
  if (isUnnamed(recipient)) return undefined;
  const contact = meet(state, recipient, change);
  contact.held_at = later(contact.held_at, received_at);
  if (reason === "x_chat") contact.held_unread = true;
  else delete contact.held_unread;
  return setHeld(state, contact, !contact.suppressed);
}

function setHeld(state: Contacts, contact: Contact, held: boolean): Contact {
  if (contact.held !== held) state.held += held ? 1 : -1;
  contact.held = held;
  return contact;
}

function mark(state: Contacts, hashes: readonly string[], { position }: Change): void {
  for (const one of hashes) if (!state.hashes.has(one)) state.hashes.set(one, position);
}

/**
 * Reasons of skips that a new import row may remove: it may correct the data, or justify another look-up at the
 * network.
 */
const CORRECTABLE: readonly SkipReason[] = [
  "missing_field",
  "no_consent",
  "invalid_recipient",
  "cannot_receive_dm",
  "protected",
];

function add(state: Contacts, added: DataOf<"RecipientAdded">, change: Change): Contact | undefined {
  if (isUnnamed(added.recipient)) return undefined;
  const contact = meet(state, added.recipient, change);
  const fields = fieldsAfter(contact.fields, added);
  for (const field of Object.keys(contact.fields)) countField(state, field, -1);
  for (const field of Object.keys(fields)) countField(state, field, 1);
  contact.listed = true;
  agree(contact, withoutStaleTracking(contact, added));
  contact.fields = fields;
  replaceText(contact, "name", added);
  replaceText(contact, "timezone", added);
  // The new row may correct the data that caused these skips, so a later run checks the contact again.
  forgetSkips(contact, CORRECTABLE);
  return contact;
}

function forgetSkips(contact: Contact, reasons: readonly SkipReason[]): void {
  changeAll(contact, (outreach) => {
    outreach.skipped = outreach.skipped.filter((reason) => !reasons.includes(reason));
  });
}

/** Content of an import row. */
type ImportedContent = Omit<DataOf<"RecipientAdded">, "recipient" | "source">;

/** Returns the values that a contact would have after an import row. */
export function contentAfterImport(contact: Contact, row: ImportedContent) {
  const after = { ...contact };
  replaceText(after, "name", row);
  replaceText(after, "timezone", row);
  const { name, timezone } = after;
  const { fields } = contact;
  return {
    name,
    timezone,
    fields: fieldsAfter(fields, row),
    ...consentAfter(contact, withoutStaleTracking(contact, row)),
  };
}

/**
 * Returns a contact's template fields after an import row: fields that the row does not mention stay. An older event
 * without `blank` replaces all fields.
 */
function fieldsAfter(before: Contact["fields"], { fields, blank }: ImportedContent): Contact["fields"] {
  if (blank === undefined) return fields;
  const kept = Object.entries(before).filter(([field]) => !blank.includes(field));
  return { ...Object.fromEntries(kept), ...fields };
}

function replaceText(contact: Contact, member: "name" | "timezone", added: ImportedContent): void {
  const text = added[member];
  if (text !== undefined) contact[member] = text;
  else if (added.blank?.includes(member) === true) delete contact[member];
}

function recordConsent(contact: Contact, record: ConsentRecord): Contact {
  agree(contact, record);
  // The new record may hold the consent that was missing, so a later run checks the recipient again.
  if (record.basis !== undefined) forgetSkips(contact, ["no_consent"]);
  return contact;
}

/** Applies a record of consent to a contact. Assigns member by member, because this runs for each row of an import. */
function agree(contact: Contact, record: ConsentRecord): void {
  const { basis, consent, tracking, consents_for } = consentAfter(contact, record);
  contact.basis = basis;
  contact.consent = consent;
  contact.tracking = tracking;
  if (tracking.status !== "granted" && contact.clicked !== undefined) delete contact.clicked;
  if (consents_for !== undefined) contact.consents_for = consents_for;
  else if (contact.consents_for !== undefined) delete contact.consents_for;
}

/**
 * Notes that a recipient clicked a link of their own. Leaves out a click so soon after the message that it was likely
 * the network's own request.
 */
function click(state: Contacts, { data, time }: Folded<"PersonalLinkClicked">, change: Change): Contact | undefined {
  const id = state.links.get(data.code);
  const contact = id === undefined ? undefined : findContact(state, { id });
  if (contact === undefined) return undefined;
  const { tracking, clicked = [] } = contact;
  const links = outreachByCampaign(contact).flatMap(([, { own_links }]) => own_links ?? []);
  const { recorded = time } = links.find(({ codes }) => codes.includes(data.code)) ?? {};
  const isFetch = msOf(time) - msOf(recorded) <= FETCH_MS;
  if (isFetch || tracking.status !== "granted" || clicked.includes(data.code)) return contact;
  meet(state, { id: id! }, change).clicked = [...clicked, data.code];
  return contact;
}

/**
 * Allows one more attempt to a contact whose message failed in the campaign. If two operators allow the same retry, the
 * second event changes nothing.
 */
function allowRetry(contact: Contact, { campaign = contact.campaign }: DataOf<"RecipientRetryAllowed">): Contact {
  if (outreachIn(contact, campaign)?.status !== "failed") return contact;
  changeOutreach(contact, campaign, (outreach) => {
    outreach.status = "open";
    outreach.again = true;
  });
  return contact;
}

function receive(contact: Contact, { received_at: receivedAt, message_id }: DataOf<"DirectMessageReceived">): Contact {
  contact.received = true;
  contact.received_id = message_id;
  // A reply may be read long after it was written. It answers only the messages that were sent before it was written.
  const answered = outreachByCampaign(contact).filter(
    ([, { attempted_at: at }]) => at !== undefined && receivedAt >= at,
  );
  for (const [campaign] of answered) changeOutreach(contact, campaign, (outreach) => (outreach.replied = true));
  if (answered.length > 0) return contact;
  contact.inbound = true;
  contact.basis = "dm_first";
  contact.wrote_at = earlier(contact.wrote_at, receivedAt);
  return contact;
}

function attempt(contact: Contact, { time, data }: Folded<"DirectMessageAttempted">): Contact {
  const { variant, personal_links = [], follows } = data;
  turnToCampaign(contact, data.campaign);
  contact.status = "attempted";
  if (follows !== undefined) contact.follows = follows;
  contact.variant = variant;
  contact.attempted_at = time;
  delete contact.message_id;
  delete contact.seen_at;
  contact.again = false;
  const codes = personal_links.map(({ code }) => code);
  if (codes.length > 0) contact.own_links = { codes };
  else delete contact.own_links;
  contact.personal_links = [...contact.personal_links, ...codes];
  return contact;
}

function doubt(contact: Contact, { data, time }: Folded<"DirectMessageInDoubt">): Contact {
  changeOutreach(contact, data.campaign, (outreach) => {
    outreach.status = "in_doubt";
    noteReached(outreach, time);
  });
  return contact;
}

/**
 * Stores when the log recorded that a message with the recipient's own links was sent or is in doubt. {@link click}
 * leaves out clicks shortly after this time, because the network likely made them.
 */
function noteReached(outreach: CampaignOutreach, recorded: string): void {
  if (outreach.own_links !== undefined) outreach.own_links = { ...outreach.own_links, recorded };
}

function take(
  state: Contacts,
  contact: Contact,
  { data: { campaign, message_id: messageId }, time }: Folded<"DirectMessageSent">,
  change: Change,
): Contact {
  changeOutreach(contact, campaign, (outreach) => {
    outreach.status = "sent";
    noteReached(outreach, time);
    if (messageId !== undefined) outreach.message_id = messageId;
  });
  delete contact.refused_after;
  state.taken.push(change.position);
  replaceRefused(state, [], change);
  return contact;
}

function fail(
  state: Contacts,
  contact: Contact,
  { campaign, retry, frees_quota, reason }: DataOf<"DirectMessageFailed">,
  change: Change,
): Contact {
  changeOutreach(contact, campaign, (outreach) => {
    outreach.status = retry ? "open" : "failed";
    outreach.again = retry;
    delete outreach.own_links;
    // The message was certainly not sent, so a message of the recipient is no reply to it.
    if (frees_quota) delete outreach.attempted_at;
  });
  if (reason === "not_permitted") refuse(state, contact, change);
  if (reason === "recipient_closed") contact.refused_after = state.taken.length;
  if (reason !== "sender_restricted") return contact;
  // The network stopped the account because of these refusals. Further refusals are counted from the beginning.
  replaceRefused(state, [], change);
  contact.refused_after = state.taken.length;
  return contact;
}

function refuse(state: Contacts, contact: Contact, change: Change): void {
  const { id } = contact;
  if (id !== undefined && !isOwnRefusal(state, contact) && !state.refused.includes(id)) {
    replaceRefused(state, [...state.refused, id], change);
  }
  contact.refused_after = state.taken.length;
}

function skip(contact: Contact, { campaign, reason, found }: DataOf<"DirectMessageSkipped">): Contact {
  changeOutreach(contact, campaign, (outreach) => {
    if (!outreach.skipped.includes(reason)) outreach.skipped = [...outreach.skipped, reason];
    if (found === undefined) return;
    outreach.status = "sent";
    outreach.attempted_at = found.sent_at;
    outreach.again = false;
  });
  return contact;
}
