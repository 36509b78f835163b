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

/** How far we got with a person. `open` to a message; everything else is not tried (again) by itself. */
export type ContactStatus = "open" | "attempted" | "in_doubt" | "sent" | "failed";

/** One person: imported, met by a run, or both. */
export interface Contact extends Consent {
  id?: string;
  username?: string;
  name?: string;
  /** IANA name of the zone that they live in. */
  timezone?: string;
  /** Codes of the links of their own that were in messages to them. */
  personal_links: string[];
  fields: Record<string, string>;
  /** Imported by the operator, so part of the `list` source. */
  listed: boolean;
  status: ContactStatus;
  suppressed: boolean;
  /** A reply of theirs may ask to be left alone, and no operator has decided that yet. */
  held: boolean;
  /** When the newest reply came that was held, ISO 8601; absent: none was. */
  held_at?: string;
  /** A message of theirs is known, and one that came after ours. */
  received: boolean;
  replied: boolean;
  /** Of the newest message that was decided, whatever came of it: `A`, `B` … */
  variant?: string;
  /** When the newest message that may have reached them was decided, ISO 8601. */
  attempted_at?: string;
  /** To be tried again though their source may be read no more: an operator allowed it, or it was not their failure. */
  again: boolean;
  /** Skips that the log holds already: each is recorded once. */
  skipped: SkipReason[];
  /** How many messages had been taken of us when the network refused the last one to them; absent: it never did. */
  refused_after?: number;
  /** Of all events that are about them but reads, in the order of the log. */
  positions: number[];
  /** Of the events that record who read about them, in the order of the log; absent: none does. */
  reads?: number[];
  /** Position of the first event of this entry, where it has absorbed one with earlier events. */
  met?: number;
  /** What events have replaced, in the order of the log; absent: nothing. {@link rewindContacts} puts it back. */
  replaced?: Replaced[];
}

/** What one event has replaced in an entry. */
export interface Replaced {
  /** Of the event. */
  readonly at: number;
  /** Only what was another value; null: there was none. */
  readonly was: { readonly [Member in keyof Contact]?: Contact[Member] | null };
  /** The entry that the event showed to be the same person, with its key. */
  readonly absorbed?: readonly [key: string, entry: Contact];
}

/** All known recipients, each found by id and by handle. */
export interface Contacts {
  /** Key -> person, in the order they were met. */
  people: Map<string, Contact>;
  /** Network id -> key, of those whose key is another one: they were met by their handle. */
  ids: Map<string, string>;
  /** Lower-case handle -> key of who has it, as far as known. */
  handles: Map<string, string>;
  /** Lower-case handle -> key of who had it last: handles are changed and taken over. */
  former: Map<string, string>;
  /** Name of a template field -> how many imported people have it. */
  fields: Map<string, number>;
  /** How many of them are held. */
  held: number;
  /** Keyed hashes of all who were ever suppressed -> position of the first event with it. They outlast an erasure. */
  hashes: Map<string, number>;
  /** Code of a recipient's own link -> their network id. */
  links: Map<string, string>;
  /** Pairs of entries that turned out to be one person: both were there from `since` on, until the event at `until`. */
  merged: { since: number; until: number }[];
  /** Positions of the messages that the network took. */
  taken: number[];
  /** Ids of the recipients that it refused since it took the last message, each once. */
  refused: string[];
  /** What events have replaced of `refused`, and of one entry of `former` (null: there was none), in the order of the log. */
  replaced: {
    readonly at: number;
    readonly refused?: string[];
    readonly former?: readonly [handle: string, key: string | null];
  }[];
  /** The entries in whose `replaced` something is, in the order of the log. */
  changed: {
    /** Position of the first change of a block -> the block: {@link BLOCKS_MAX} at most. */
    readonly full: Map<number, Changes>;
    /** Goes on until it has {@link BLOCK_CHANGES}. */
    open: Changes;
  };
  /** The state can be put back to this position and to all later ones: older changes are dropped. */
  rewinds_to: number;
}

/** Two lists of equal length: the position of an event, and the key of an entry that it has changed. */
interface Changes {
  readonly at: number[];
  readonly keys: string[];
}

/** Changes that are copied, dropped and stored together. */
const BLOCK_CHANGES = 64;

/**
 * Changes that are held to put recipients back: a hundred messages a day come to that in two years, and a nightly import of
 * 50,000 changed rows in five days. Of such rows they take 80 MB.
 */
export const REPLACED_MAX = 4_000 * BLOCK_CHANGES;
const BLOCKS_MAX = REPLACED_MAX / BLOCK_CHANGES;

/** Dropped at once, in about a millisecond. */
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

/** An event, and the entries that it may change as they were before it. */
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

/** All that an event may replace. */
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
 * Drops what events up to a position have replaced. An entry that was absorbed keeps its own until those of the entry it is
 * in are dropped.
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

/** How many people were known at a position, by what is known of them now: each from their first event on. */
export function countPeopleAt({ people, merged }: Contacts, position: number): number {
  let count = merged.filter(({ since, until }) => since <= position && position < until).length;
  for (const { positions } of people.values()) if ((positions[0] ?? Infinity) <= position) count++;
  return count;
}

/** A person by all that is known under their id and under their handle, also before an event says that the two are one. */
export function findPerson(state: Contacts, who: Recipient): Contact | undefined {
  const [one, other] = entriesOf(state, who);
  return one === undefined || other === undefined ? one : united(one, other);
}

/** What is one person: the entry of their id, and one of their handle alone. */
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

/** The last holder of the handle, behind their key. A name with an id means the person of that id. */
function formerHolder(state: Contacts, { id, username }: Recipient): readonly [string, Contact] | undefined {
  if (id !== undefined || username === undefined) return undefined;
  const key = state.former.get(username.toLowerCase()) ?? "";
  const contact = state.people.get(key);
  return contact && [key, contact];
}

/** What is known of who a recipient is. */
export function toRecipient({
  id,
  username,
}: {
  readonly id?: string | undefined;
  readonly username?: string | undefined;
}): Recipient {
  return { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
}

/** Positions of all that the log holds about a contact, reads too, in its order. */
export function positionsAbout({ positions, reads }: Contact): readonly number[] {
  return reads === undefined ? positions : inAscendingOrder([...positions, ...reads]);
}

/** A read makes no contact: it is about one that is known, or was erased since. */
function noteRead(state: Contacts, { data, position }: Folded<"PersonalDataRead">): void {
  const contact = data.recipient && findContact(state, data.recipient);
  if (contact !== undefined) (contact.reads ??= []).push(position);
}

/** Returns the contact that the event is about; undefined: none. */
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
      // What another account is refused says nothing of this one.
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

/** Of objects without a Map. */
function isSame(one: unknown, other: unknown): boolean {
  return typeof one === "object" && JSON.stringify(one) === JSON.stringify(other);
}

/** What a new row may put right, or gives a reason to ask the network about once more. */
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
  // What was missing or wrong may be put right by the new row, so it is judged and recorded afresh.
  contact.skipped = contact.skipped.filter((reason) => !CORRECTABLE.includes(reason));
  return contact;
}

/** The fields once a row is added: those that it does not mention stay. An older event without `blank` replaces all. */
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

/** Member by member: each row of an import comes this way. */
function agree(contact: Contact, record: ConsentRecord): void {
  const { basis, consent, tracking } = consentAfter(contact, record);
  contact.basis = basis;
  contact.consent = consent;
  contact.tracking = tracking;
}

/** Two operators may allow the same retry: only the first one finds a failure. */
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
  // Certainly not sent, so nothing that they write is an answer to it.
  if (frees_quota) delete contact.attempted_at;
  if (reason === "not_permitted") refuse(state, contact, change);
  if (reason === "recipient_closed") contact.refused_after = state.taken.length;
  if (reason !== "sender_restricted") return contact;
  // The row has led to a decision, and the next one begins.
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

/** Whether others were reached since the network refused the person: one more refusal is about them alone. */
export function isOwnRefusal({ taken }: Contacts, { refused_after }: Contact): boolean {
  return refused_after !== undefined && refused_after < taken.length;
}

/** True if the network refused them once and a retry is allowed: they come after all others, so as not to delay these. */
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

/** The person of the event, made or merged when id and handle turn out to be one. */
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

/** The contact that an operator names: the handle may be a former one. */
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

/** The key a handle leads to, unless that person is known by another id: handles change hands. */
function keyOfHandle(state: Contacts, who: Recipient): string | undefined {
  if (who.username === undefined) return undefined;
  const key = state.handles.get(who.username.toLowerCase());
  const known = key === undefined ? undefined : state.people.get(key)?.id;
  return known !== undefined && who.id !== undefined && known !== who.id ? undefined : key;
}

function keyOf(state: Contacts, who: Recipient): string | undefined {
  return keyOfId(state, who) ?? keyOfHandle(state, who);
}

/** Who is met by id has it as their key; the key of another one begins with `@`. */
function keyOfId({ people, ids }: Contacts, { id }: Recipient): string | undefined {
  if (id === undefined || id.startsWith("@")) return undefined;
  return people.has(id) ? id : ids.get(id);
}

function newKey(state: Contacts, { id, username = "" }: Recipient): string {
  let key = id ?? `@${username.toLowerCase()}`;
  // Taken by who had the handle when they were met.
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
 * The handle no longer leads to its holder, or the consent of the next one who takes it would be theirs. What the log
 * recorded of them by that handle stays theirs.
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

/** How much a status forbids: the stricter of two wins when two entries are one person. */
const STRICTNESS: readonly ContactStatus[] = ["open", "failed", "attempted", "in_doubt", "sent"];

/** Two entries turned out to be one person. */
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

/** Two entries as one: whatever forbids a message stays, and so does a recorded consent. */
function united(one: Contact, other: Contact): Contact {
  return {
    ...other,
    // An entry that was put back holds undefined for what was absent.
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
