import type { DataOf, Folded } from "../events/catalog.ts";
import type { Recipient, SkipReason } from "../events/outreach.ts";
import { markOfErased } from "../events/encryption.ts";
import {
  type Consent,
  consentAfter,
  type ConsentRecord,
  earlier,
  NO_CONSENT,
  unitedConsent,
  withoutStaleTracking,
} from "./consent.ts";
import type { Projection } from "./projection.ts";

/**
 * How far we got with a contact. Only `open` contacts get a message; all others are not tried (again) automatically.
 */
export type ContactStatus = "open" | "attempted" | "in_doubt" | "sent" | "failed";

/** One recipient: imported, met by a run, or both. */
export interface Contact extends Consent {
  id?: string;
  username?: string;
  name?: string;
  /** IANA name of the recipient's time zone. */
  timezone?: string;
  /** Codes of the personal links in messages to them. */
  personal_links: string[];
  fields: Record<string, string>;
  /** True if the operator imported them, so that they are part of the `list` source. */
  listed: boolean;
  status: ContactStatus;
  suppressed: boolean;
  /** True if a reply of theirs may ask us to stop, and no operator has decided that yet. */
  held: boolean;
  /** When the newest held reply came, ISO 8601; absent if none was held. */
  held_at?: string;
  /** True if a message of theirs is known. */
  received: boolean;
  /** True if a message of theirs came after ours. */
  replied: boolean;
  /** Variant of the newest message that was decided, regardless of its outcome: `A`, `B` … */
  variant?: string;
  /** When the newest message that may have reached them was decided, ISO 8601. */
  attempted_at?: string;
  /**
   * True if they are tried again even if their source is no longer read: an operator allowed it, or the failure was not
   * theirs.
   */
  again: boolean;
  /** Reasons of skips that the log already holds: each is recorded once. */
  skipped: SkipReason[];
  /**
   * Number of our messages that the network had accepted when it refused the last one to them; absent if it never did.
   */
  refused_after?: number;
  /** Positions of all events about them except reads, in the order of the log. */
  positions: number[];
  /** Positions of the events that record reads about them, in the order of the log; absent if there are none. */
  reads?: number[];
  /** Position of the first event of this entry, if it has absorbed one with earlier events. */
  met?: number;
  /**
   * Values that events have replaced, in the order of the log; absent if there are none. {@link rewindContacts} puts
   * them back.
   */
  replaced?: Replaced[];
}

/** The values that one event has replaced in an entry. */
export interface Replaced {
  /** Position of the event. */
  readonly at: number;
  /** The former values of changed members; null if a member was absent. */
  readonly was: { readonly [Member in keyof Contact]?: Contact[Member] | null };
  /** The entry, with its key, that the event showed to be the same recipient. */
  readonly absorbed?: readonly [key: string, entry: Contact];
}

/** All known recipients, found by id and by handle. */
export interface Contacts {
  /** Key -> contact, in the order in which they were met. */
  people: Map<string, Contact>;
  /** Network id -> key, for contacts with another key: they were met by their handle. */
  ids: Map<string, string>;
  /** Lower-case handle -> key of its known holder. */
  handles: Map<string, string>;
  /** Lower-case handle -> key of its last former holder: handles are changed and taken over. */
  former: Map<string, string>;
  /** Name of a template field -> number of imported contacts that have it. */
  fields: Map<string, number>;
  /** Number of contacts that are held. */
  held: number;
  /**
   * Keyed hash of a recipient who was ever suppressed -> position of the first event with it. Hashes outlast an
   * erasure.
   */
  hashes: Map<string, number>;
  /** Code of a personal link -> network id of its recipient. */
  links: Map<string, string>;
  /** Pairs of entries that turned out to be one recipient: both existed from `since` on, until the event at `until`. */
  merged: { since: number; until: number }[];
  /** Positions of the messages that the network accepted. */
  taken: number[];
  /** Ids of the recipients that the network refused since it accepted the last message, each once. */
  refused: string[];
  /**
   * Values that events have replaced in `refused`, and in one entry of `former` (null: there was none), in the order of
   * the log.
   */
  replaced: {
    readonly at: number;
    readonly refused?: string[];
    readonly former?: readonly [handle: string, key: string | null];
  }[];
  /** The entries that have something in `replaced`, in the order of the log. */
  changed: {
    /** Position of the first change of a block -> the block; at most {@link BLOCKS_MAX}. */
    readonly full: Map<number, Changes>;
    /** The block that is filled until it has {@link BLOCK_CHANGES}. */
    open: Changes;
  };
  /** The state can be rewound to this position and to all later ones; older changes are dropped. */
  rewinds_to: number;
}

/** Two lists of equal length: positions of events, and the keys of the entries that they changed. */
interface Changes {
  readonly at: number[];
  readonly keys: string[];
}

/** Changes that are copied, dropped and stored together. */
const BLOCK_CHANGES = 64;

/**
 * Maximum number of changes kept for rewinding: two years of a hundred messages a day, or five days of a nightly import
 * of 50,000 changed rows. Changes of such rows take 80 MB.
 */
export const REPLACED_MAX = 4_000 * BLOCK_CHANGES;
const BLOCKS_MAX = REPLACED_MAX / BLOCK_CHANGES;

/** Number of blocks dropped at once, in about a millisecond. */
const BLOCKS_DROPPED = BLOCKS_MAX / 100;

export const contacts: Projection<Contacts> = {
  name: "contacts",
  version: 17,
  types: [
    "RecipientAdded",
    "ConsentRecorded",
    "RecipientSuppressed",
    "RecipientHeld",
    "RecipientReleased",
    "RecipientRetryAllowed",
    "DirectMessageReceived",
    "DirectMessageAttempted",
    "DirectMessageSent",
    "DirectMessageSkipped",
    "DirectMessageFailed",
    "DirectMessageInDoubt",
    "PersonalLinkClicked",
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
      const change = { position: event.position, before: new Map<Contact, Before>() };
      evolveContact(state, event, change)?.positions.push(event.position);
      for (const [contact, before] of change.before) noteReplaced(state, contact, before, change);
      if (state.changed.full.size > BLOCKS_MAX) dropReplacedUpTo(state, endOfOldest(state, BLOCKS_DROPPED));
    }
    return state;
  },
};

/** An event, and the former values of the entries that it may change. */
interface Change {
  readonly position: number;
  readonly before: Map<Contact, Before>;
  absorbed?: readonly [key: string, entry: Contact];
}

/** An entry before an event, and its key. */
interface Before {
  readonly key: string;
  readonly entry: Contact;
}

function willChange({ before }: Change, key: string, contact: Contact): Contact {
  if (!before.has(contact)) before.set(contact, { key, entry: { ...contact } });
  return contact;
}

/** All members that an event may replace. */
const MEMBERS = Object.keys({
  id: true,
  username: true,
  name: true,
  timezone: true,
  basis: true,
  consent: true,
  tracking: true,
  inbound: true,
  wrote_at: true,
  personal_links: true,
  fields: true,
  listed: true,
  status: true,
  suppressed: true,
  held: true,
  held_at: true,
  received: true,
  replied: true,
  variant: true,
  attempted_at: true,
  again: true,
  skipped: true,
  refused_after: true,
  positions: true,
  reads: true,
  met: true,
} satisfies Record<Exclude<keyof Contact, "replaced">, true>) as readonly Exclude<keyof Contact, "replaced">[];

function noteReplaced({ changed }: Contacts, contact: Contact, { key, entry }: Before, change: Change): void {
  const { position, absorbed } = change;
  let was: Record<string, unknown> | undefined;
  for (const member of MEMBERS) {
    const old = entry[member];
    if (old !== contact[member] && !isSame(old, contact[member])) (was ??= {})[member] = old ?? null;
  }
  if (was === undefined) return;
  const isInto = absorbed !== undefined && "positions" in was;
  (contact.replaced ??= []).push(isInto ? { at: position, was, absorbed } : { at: position, was });
  const { open } = changed;
  open.at.push(position);
  open.keys.push(key);
  if (open.at.length < BLOCK_CHANGES) return;
  changed.full.set(open.at[0]!, open);
  changed.open = { at: [], keys: [] };
}

/** The position of the last change in some of the oldest blocks. */
function endOfOldest({ changed: { full } }: Contacts, blocks: number): number {
  const [, last] = [...Iterator.from(full).take(blocks)].at(-1)!;
  return last.at.at(-1)!;
}

/**
 * Drops what events up to a position have replaced. An absorbed entry keeps its own replaced values until those of the
 * absorbing entry are dropped.
 */
export function dropReplacedUpTo(state: Contacts, position: number): void {
  const { full, open } = state.changed;
  state.rewinds_to = Math.max(state.rewinds_to, position);
  for (const [first, { at, keys }] of full) {
    if (first > position) break;
    for (const key of keys) dropReplaced(state.people.get(key), position);
    if (at.at(-1)! <= position) full.delete(first);
  }
  for (const key of open.keys) dropReplaced(state.people.get(key), position);
  const kept = state.replaced.findIndex(({ at }) => at > position);
  state.replaced.splice(0, kept === -1 ? state.replaced.length : kept);
}

function dropReplaced(contact: Contact | undefined, position: number): void {
  const { replaced } = contact ?? {};
  if (contact === undefined || replaced === undefined || replaced[0]!.at > position) return;
  const kept = replaced.filter(({ at }) => at > position);
  if (kept.length > 0) contact.replaced = kept;
  else delete contact.replaced;
}

/** Finds a contact by id, else by handle; by a former handle only while no other contact is known to have it. */
export function findContact(state: Contacts, who: Recipient): Contact | undefined {
  const key = keyOf(state, who);
  return key === undefined ? formerHolder(state, who)?.[1] : state.people.get(key);
}

/** Number of contacts known at a position, judged by what is known now: each counts from its first event on. */
export function countPeopleAt({ people, merged }: Contacts, position: number): number {
  let count = merged.filter(({ since, until }) => since <= position && position < until).length;
  for (const { positions } of people.values()) if ((positions[0] ?? Infinity) <= position) count++;
  return count;
}

/**
 * All that is known of a recipient under their id and under their handle, even before an event shows that the two are
 * one.
 */
export function findPerson(state: Contacts, who: Recipient): Contact | undefined {
  const [one, other] = entriesOf(state, who);
  return one === undefined || other === undefined ? one : united(one, other);
}

/** The entries of one recipient: the one of their id, and one of their handle alone. */
export function entriesOf(state: Contacts, who: Recipient): readonly Contact[] {
  const contact = findContact(state, who);
  if (contact === undefined) return [];
  const namesake = who.username === undefined ? undefined : findContact(state, { username: who.username });
  const isOther = namesake === undefined || namesake === contact || namesake.id !== undefined;
  return isOther ? [contact] : [contact, namesake];
}

/** True if the handle is this contact's, or was and no other contact is known to have taken it since. */
export function isHeldBy(state: Contacts, handle: string, person: Contact | undefined): boolean {
  const key = state.handles.get(handle) ?? state.former.get(handle);
  return key !== undefined && state.people.get(key) === person;
}

/**
 * The last former holder of the handle, with their key. Undefined if there is an id, because the name then means the
 * recipient of that id.
 */
function formerHolder(state: Contacts, { id, username }: Recipient): readonly [string, Contact] | undefined {
  if (id !== undefined || username === undefined) return undefined;
  const key = state.former.get(username.toLowerCase()) ?? "";
  const contact = state.people.get(key);
  return contact && [key, contact];
}

/** A recipient with only the known members. */
export function toRecipient({
  id,
  username,
}: {
  readonly id?: string | undefined;
  readonly username?: string | undefined;
}): Recipient {
  return { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
}

/** Positions of all events about a contact, including reads, in the order of the log. */
export function positionsAbout({ positions, reads }: Contact): readonly number[] {
  return reads === undefined ? positions : inAscendingOrder([...positions, ...reads]);
}

/** A read creates no contact: its recipient is known already, or was erased since. */
function noteRead(state: Contacts, { data, position }: Folded<"PersonalDataRead">): void {
  const contact = data.recipient && findContact(state, data.recipient);
  if (contact !== undefined) (contact.reads ??= []).push(position);
}

/** Returns the contact that the event is about; undefined if there is none. */
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
      return allowRetry(meant(state, event.data.recipient, change));
    case "DirectMessageReceived":
      return receive(meet(state, event.data.recipient, change), event.data.received_at);
    case "DirectMessageSkipped":
      return skip(meet(state, event.data.recipient, change), event.data);
    case "DirectMessageAttempted": {
      const { recipient, personal_links = [] } = event.data;
      if (isUnnamed(recipient)) return undefined;
      for (const { code } of personal_links) state.links.set(code, recipient.id);
      return attempt(meet(state, recipient, change), event.data, event.time);
    }
    case "PersonalLinkClicked": {
      const id = state.links.get(event.data.code);
      return id === undefined ? undefined : findContact(state, { id });
    }
    case "DirectMessageSent":
      return take(state, meet(state, event.data.recipient, change), change);
    case "DirectMessageInDoubt":
      return doubt(meet(state, event.data.recipient, change));
    case "DirectMessageFailed":
      return fail(state, meet(state, event.data.recipient, change), event.data, change);
    case "AccountUnlinked":
      // Refusals of one account say nothing about another.
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
  { recipient, received_at }: DataOf<"RecipientHeld">,
  change: Change,
): Contact | undefined {
  if (isUnnamed(recipient)) return undefined;
  const contact = meet(state, recipient, change);
  contact.held_at = later(contact.held_at, received_at);
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

function replaceRefused(state: Contacts, refused: string[], { position }: Change): void {
  if (state.refused.length + refused.length > 0) state.replaced.push({ at: position, refused: state.refused });
  state.refused = refused;
}

/** For values without Maps. */
function isSame(one: unknown, other: unknown): boolean {
  return typeof one === "object" && JSON.stringify(one) === JSON.stringify(other);
}

/** Skips that a new row may correct, or that it gives a reason to ask the network about again. */
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
  for (const field of Object.keys(contact.fields)) count(state, field, -1);
  for (const field of Object.keys(fields)) count(state, field, 1);
  contact.listed = true;
  agree(contact, withoutStaleTracking(contact, added));
  contact.fields = fields;
  replaceText(contact, "name", added);
  replaceText(contact, "timezone", added);
  // The new row may correct what was missing or wrong, so the contact is judged and recorded again.
  contact.skipped = contact.skipped.filter((reason) => !CORRECTABLE.includes(reason));
  return contact;
}

/**
 * The fields after a row was added: those that it does not mention stay. An older event without `blank` replaces all.
 */
function fieldsAfter(before: Contact["fields"], { fields, blank }: DataOf<"RecipientAdded">): Contact["fields"] {
  if (blank === undefined) return fields;
  const kept = Object.entries(before).filter(([field]) => !blank.includes(field));
  return { ...Object.fromEntries(kept), ...fields };
}

function replaceText(contact: Contact, member: "name" | "timezone", added: DataOf<"RecipientAdded">): void {
  const text = added[member];
  if (text !== undefined) contact[member] = text;
  else if (added.blank?.includes(member) === true) delete contact[member];
}

function recordConsent(contact: Contact, record: ConsentRecord): Contact {
  agree(contact, record);
  // The new record may hold what was missing.
  if (record.basis !== undefined) contact.skipped = contact.skipped.filter((reason) => reason !== "no_consent");
  return contact;
}

/** Assigns member by member, because this runs for each row of an import. */
function agree(contact: Contact, record: ConsentRecord): void {
  const { basis, consent, tracking } = consentAfter(contact, record);
  contact.basis = basis;
  contact.consent = consent;
  contact.tracking = tracking;
}

/** Two operators may allow the same retry; only the first one finds a failure. */
function allowRetry(contact: Contact): Contact {
  if (contact.status !== "failed") return contact;
  contact.status = "open";
  contact.again = true;
  return contact;
}

function receive(contact: Contact, receivedAt: string): Contact {
  contact.received = true;
  if (contact.attempted_at !== undefined && receivedAt >= contact.attempted_at) {
    contact.replied = true;
    return contact;
  }
  contact.inbound = true;
  contact.basis = "dm_first";
  contact.wrote_at = earlier(contact.wrote_at, receivedAt);
  return contact;
}

function attempt(
  contact: Contact,
  { variant, personal_links = [] }: Pick<DataOf<"DirectMessageAttempted">, "variant" | "personal_links">,
  at: string,
): Contact {
  contact.status = "attempted";
  contact.variant = variant;
  contact.attempted_at = at;
  contact.again = false;
  contact.personal_links = [...contact.personal_links, ...personal_links.map(({ code }) => code)];
  return contact;
}

function doubt(contact: Contact): Contact {
  contact.status = "in_doubt";
  return contact;
}

function take(state: Contacts, contact: Contact, change: Change): Contact {
  contact.status = "sent";
  delete contact.refused_after;
  state.taken.push(change.position);
  replaceRefused(state, [], change);
  return contact;
}

function fail(
  state: Contacts,
  contact: Contact,
  { retry, frees_quota, reason }: DataOf<"DirectMessageFailed">,
  change: Change,
): Contact {
  contact.status = retry ? "open" : "failed";
  contact.again = retry;
  // It was certainly not sent, so nothing that they write is a reply to it.
  if (frees_quota) delete contact.attempted_at;
  if (reason === "not_permitted") refuse(state, contact, change);
  if (reason === "recipient_closed") contact.refused_after = state.taken.length;
  if (reason !== "sender_restricted") return contact;
  // This series of refusals has led to a decision, and a new one begins.
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

/** True if others were reached since the network refused this recipient: another refusal then concerns them alone. */
export function isOwnRefusal({ taken }: Contacts, { refused_after }: Contact): boolean {
  return refused_after !== undefined && refused_after < taken.length;
}

/** True if the network refused them once and a retry is allowed: they come last, so as not to delay all others. */
export function isTriedLast({ again, refused_after }: Contact): boolean {
  return again && refused_after !== undefined;
}

function skip(contact: Contact, { reason, found }: Pick<DataOf<"DirectMessageSkipped">, "reason" | "found">): Contact {
  if (!contact.skipped.includes(reason)) contact.skipped = [...contact.skipped, reason];
  if (found === undefined) return contact;
  contact.status = "sent";
  contact.attempted_at = found.sent_at;
  contact.again = false;
  return contact;
}

function count(state: Contacts, field: string, by: 1 | -1): void {
  const people = (state.fields.get(field) ?? 0) + by;
  if (people > 0) state.fields.set(field, people);
  else state.fields.delete(field);
}

/** Returns the contact of an event; makes it, or merges two entries if id and handle turn out to be one recipient. */
function meet(state: Contacts, who: Recipient, change: Change): Contact {
  if (isUnnamed(who)) return newContact();
  const byId = keyOfId(state, who);
  const byHandle = keyOfHandle(state, who);
  const key = byId ?? byHandle ?? newKey(state, who);
  let contact = state.people.get(key);
  if (contact === undefined) {
    contact = newContact();
    state.people.set(key, contact);
  } else willChange(change, key, contact);
  if (byHandle !== undefined && byHandle !== key) absorb(state, contact, byHandle, change);
  name(state, key, contact, who, change);
  return contact;
}

/** The contact that an operator names; the handle may be a former one. */
function meant(state: Contacts, who: Recipient, change: Change): Contact {
  const former = keyOf(state, who) === undefined ? formerHolder(state, who) : undefined;
  return former === undefined ? meet(state, who, change) : willChange(change, ...former);
}

/** True for an erased recipient, who has no name to be found by. */
function isUnnamed({ id, username }: Recipient): boolean {
  return id === undefined ? username === undefined : markOfErased(id) !== undefined;
}

function newContact(): Contact {
  return {
    basis: "none",
    consent: null,
    tracking: NO_CONSENT.tracking,
    inbound: false,
    personal_links: [],
    fields: {},
    listed: false,
    status: "open",
    suppressed: false,
    held: false,
    received: false,
    replied: false,
    again: false,
    skipped: [],
    positions: [],
  };
}

/** The key that a handle leads to, unless that contact has another id: handles change hands. */
function keyOfHandle(state: Contacts, who: Recipient): string | undefined {
  if (who.username === undefined) return undefined;
  const key = state.handles.get(who.username.toLowerCase());
  const known = key === undefined ? undefined : state.people.get(key)?.id;
  return known !== undefined && who.id !== undefined && known !== who.id ? undefined : key;
}

function keyOf(state: Contacts, who: Recipient): string | undefined {
  return keyOfId(state, who) ?? keyOfHandle(state, who);
}

/** A contact met by id has the id as its key; the key of any other begins with `@`. */
function keyOfId({ people, ids }: Contacts, { id }: Recipient): string | undefined {
  if (id === undefined || id.startsWith("@")) return undefined;
  return people.has(id) ? id : ids.get(id);
}

function newKey(state: Contacts, { id, username = "" }: Recipient): string {
  let key = id ?? `@${username.toLowerCase()}`;
  // A former holder, who was met by this handle, has the key.
  while (state.people.has(key)) key += "'";
  return key;
}

function name(state: Contacts, key: string, contact: Contact, who: Recipient, change: Change): void {
  if (who.id !== undefined) {
    contact.id = who.id;
    if (key !== who.id) state.ids.set(who.id, key);
  }
  if (who.username === undefined) return;
  const [handle, before] = [who.username.toLowerCase(), contact.username?.toLowerCase()];
  if (before !== undefined && before !== handle) leave(state, before, contact, change);
  const holder = state.handles.get(handle);
  if (holder !== undefined && holder !== key) leave(state, handle, state.people.get(holder), change);
  contact.username = who.username;
  state.handles.set(handle, key);
  if (state.former.get(handle) === key) replaceFormer(state, handle, undefined, change);
}

/**
 * Removes the handle from its holder; otherwise the consent of its next holder would count as theirs. Records of the
 * holder by that handle stay theirs.
 */
function leave(state: Contacts, handle: string, holder: Contact | undefined, change: Change): void {
  const key = state.handles.get(handle);
  // The holder was merged into another entry.
  if (holder === undefined || key === undefined) return;
  state.handles.delete(handle);
  replaceFormer(state, handle, key, change);
  delete willChange(change, key, holder).username;
}

function replaceFormer(state: Contacts, handle: string, key: string | undefined, { position }: Change): void {
  state.replaced.push({ at: position, former: [handle, state.former.get(handle) ?? null] });
  if (key === undefined) state.former.delete(handle);
  else state.former.set(handle, key);
}

/** Statuses by how much they forbid: the stricter of two wins when two entries are one recipient. */
const STRICTNESS: readonly ContactStatus[] = ["open", "failed", "attempted", "in_doubt", "sent"];

/** Merges two entries that turned out to be one recipient. */
function absorb(state: Contacts, into: Contact, otherKey: string, change: Change): void {
  const other = state.people.get(otherKey);
  if (other === undefined) return;
  const { position } = change;
  const since = Math.max(into.positions[0] ?? position, other.positions[0] ?? position);
  state.merged.push({ since, until: position });
  state.people.delete(otherKey);
  for (const field of Object.keys(other.fields)) if (Object.hasOwn(into.fields, field)) count(state, field, -1);
  const { replaced, met = into.positions[0] ?? position } = into;
  const held = Number(into.held) + Number(other.held);
  Object.assign(into, united(into, other));
  state.held += Number(into.held) - held;
  if (replaced === undefined) delete into.replaced;
  if (into.positions[0] === met) delete into.met;
  else into.met = met;
  change.absorbed = [otherKey, other];
}

/** Two entries as one: anything that forbids a message stays, and so does a recorded consent. */
function united(one: Contact, other: Contact): Contact {
  return {
    ...other,
    // A rewound entry holds undefined for a member that was absent.
    ...(Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined)) as unknown as Contact),
    ...unitedConsent(one, other),
    status: STRICTNESS.indexOf(other.status) > STRICTNESS.indexOf(one.status) ? other.status : one.status,
    personal_links: [...one.personal_links, ...other.personal_links],
    fields: { ...other.fields, ...one.fields },
    listed: one.listed || other.listed,
    suppressed: one.suppressed || other.suppressed,
    held: (one.held || other.held) && !one.suppressed && !other.suppressed,
    ...(other.held_at === undefined ? {} : { held_at: later(one.held_at, other.held_at) }),
    inbound: one.inbound || other.inbound,
    received: one.received || other.received,
    replied: one.replied || other.replied,
    again: one.again || other.again,
    skipped: [...new Set([...one.skipped, ...other.skipped])],
    positions: inAscendingOrder([...one.positions, ...other.positions]),
    ...(one.reads === undefined && other.reads === undefined
      ? {}
      : { reads: inAscendingOrder([...(one.reads ?? []), ...(other.reads ?? [])]) }),
    ...(other.refused_after === undefined
      ? {}
      : { refused_after: Math.max(one.refused_after ?? 0, other.refused_after) }),
  };
}

/** Returns the later of two times, ISO 8601 in UTC. */
function later(one: string | undefined, other: string): string {
  return one !== undefined && one > other ? one : other;
}

function inAscendingOrder(positions: readonly number[]): number[] {
  return positions.toSorted((before, after) => before - after);
}
