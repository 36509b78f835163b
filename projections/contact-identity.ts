import { markOfErased } from "../events/declare-personal-members.ts";
import type { Recipient } from "../events/outreach.ts";
import { unitedConsent } from "./consent.ts";
import { type Change, replaceFormer, willChange } from "./contact-changes-to-rewind.ts";
import { uniteCampaigns, uniteOutreach } from "./contact-outreach-by-campaign.ts";
import { type Contact, type Contacts, inAscendingOrder, later, newContact } from "./contact-state.ts";

/**
 * Finds a contact by id, else by the handle that it has now. Falls back to the last former holder of the handle if no
 * known contact has it now.
 */
export function findContact(state: Contacts, who: Recipient): Contact | undefined {
  const key = keyOf(state, who);
  return key === undefined ? formerHolder(state, who)?.[1] : state.people.get(key);
}

/**
 * Returns all that is known of a recipient under their id and under their handle, even before an event shows that the
 * two are one.
 */
export function findPerson(state: Contacts, who: Recipient): Contact | undefined {
  const [one, other] = entriesOf(state, who);
  return one === undefined || other === undefined ? one : united(one, other);
}

/**
 * Returns the contacts that are or may be the recipient: the one found by id or handle, and the one that has the handle
 * but no id yet.
 */
export function entriesOf(state: Contacts, who: Recipient): readonly Contact[] {
  const contact = findContact(state, who);
  if (contact === undefined) return [];
  const namesake = who.username === undefined ? undefined : findContact(state, { username: who.username });
  const isOther = namesake === undefined || namesake === contact || namesake.id !== undefined;
  return isOther ? [contact] : [contact, namesake];
}

/** True if the contact has the handle now, or had it and no other contact is known to have it now. */
export function isHeldBy(state: Contacts, handle: string, person: Contact | undefined): boolean {
  const key = state.handles.get(handle) ?? state.former.get(handle);
  return key !== undefined && state.people.get(key) === person;
}

/**
 * Returns the last contact that had the handle formerly, with its key. Undefined if `id` is given, because then only
 * the contact with that id is meant.
 */
function formerHolder(state: Contacts, { id, username }: Recipient): readonly [string, Contact] | undefined {
  if (id !== undefined || username === undefined) return undefined;
  const key = state.former.get(username.toLowerCase()) ?? "";
  const contact = state.people.get(key);
  return contact && [key, contact];
}

/**
 * Returns the contact of the recipient that an event names. Creates it, or merges two entries if id and handle turn out
 * to be one recipient.
 */
export function meet(state: Contacts, who: Recipient, change: Change): Contact {
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
  setNames(state, key, contact, who, change);
  return contact;
}

/**
 * Returns the contact that an operator names, to change it. Also finds a contact that had the handle formerly, unless
 * another contact has it now.
 */
export function meant(state: Contacts, who: Recipient, change: Change): Contact {
  const former = keyOf(state, who) === undefined ? formerHolder(state, who) : undefined;
  return former === undefined ? meet(state, who, change) : willChange(change, ...former);
}

/** True if the recipient was erased, and so has no name to be found by. */
export function isUnnamed({ id, username }: Recipient): boolean {
  return id === undefined ? username === undefined : markOfErased(id) !== undefined;
}

/**
 * Returns the key in `state.people` of the contact that has the recipient's handle now. Undefined if there is none, or
 * if that contact has another id than the recipient: the handle has then passed to another person.
 */
function keyOfHandle(state: Contacts, who: Recipient): string | undefined {
  if (who.username === undefined) return undefined;
  const key = state.handles.get(who.username.toLowerCase());
  const known = key === undefined ? undefined : state.people.get(key)?.id;
  return known !== undefined && who.id !== undefined && known !== who.id ? undefined : key;
}

function keyOf(state: Contacts, who: Recipient): string | undefined {
  return keyOfId(state, who) ?? keyOfHandle(state, who);
}

/**
 * Returns the key of the contact with the recipient's id. A contact met by id has the id as its key; the key of any
 * other begins with `@`.
 */
function keyOfId({ people, ids }: Contacts, { id }: Recipient): string | undefined {
  if (id === undefined || id.startsWith("@")) return undefined;
  return people.has(id) ? id : ids.get(id);
}

function newKey(state: Contacts, { id, username = "" }: Recipient): string {
  let key = id ?? `@${username.toLowerCase()}`;
  // A contact that was first known by this handle keeps it as its key, even if it has another handle now. The new key
  // must differ.
  while (state.people.has(key)) key += "'";
  return key;
}

function setNames(state: Contacts, key: string, contact: Contact, who: Recipient, change: Change): void {
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
 * Removes a handle from its holder, because another recipient has it now. A consent recorded for the new holder would
 * count for the former one otherwise. Everything recorded of the former holder stays with that contact.
 */
function leave(state: Contacts, handle: string, holder: Contact | undefined, change: Change): void {
  const key = state.handles.get(handle);
  // The holder was merged into another contact, so no handle has to be removed.
  if (holder === undefined || key === undefined) return;
  state.handles.delete(handle);
  replaceFormer(state, handle, key, change);
  delete willChange(change, key, holder).username;
}

/** Merges two entries that turned out to be one recipient. */
function absorb(state: Contacts, into: Contact, otherKey: string, change: Change): void {
  const other = state.people.get(otherKey);
  if (other === undefined) return;
  const { position } = change;
  const since = Math.max(into.positions[0] ?? position, other.positions[0] ?? position);
  state.merged.push({ since, until: position });
  state.people.delete(otherKey);
  for (const field of Object.keys(other.fields)) if (Object.hasOwn(into.fields, field)) countField(state, field, -1);
  const { replaced, met = into.positions[0] ?? position } = into;
  const held = Number(into.held) + Number(other.held);
  const whole = united(into, other);
  for (const member of Object.keys(into)) if (!Object.hasOwn(whole, member)) delete into[member as keyof Contact];
  Object.assign(into, whole);
  state.held += Number(into.held) - held;
  if (replaced === undefined) delete into.replaced;
  if (into.positions[0] === met) delete into.met;
  else into.met = met;
  change.absorbed = [otherKey, other];
}

/**
 * Merges two entries of one recipient into a new one. Keeps everything that forbids a message, and each recorded
 * consent.
 */
function united(one: Contact, other: Contact): Contact {
  const contact: Contact = {
    ...uniteOutreach(one, other),
    ...unitedConsent(one, other),
    personal_links: [...one.personal_links, ...other.personal_links],
    ...(other.clicked === undefined ? {} : { clicked: [...(one.clicked ?? []), ...other.clicked] }),
    fields: { ...other.fields, ...one.fields },
    listed: one.listed || other.listed,
    suppressed: one.suppressed || other.suppressed,
    held: (one.held || other.held) && !one.suppressed && !other.suppressed,
    ...(other.held_at === undefined ? {} : { held_at: later(one.held_at, other.held_at) }),
    inbound: one.inbound || other.inbound,
    received: one.received || other.received,
    positions: inAscendingOrder([...one.positions, ...other.positions]),
    ...(one.reads === undefined && other.reads === undefined
      ? {}
      : { reads: inAscendingOrder([...(one.reads ?? []), ...(other.reads ?? [])]) }),
    ...(other.refused_after === undefined
      ? {}
      : { refused_after: Math.max(one.refused_after ?? 0, other.refused_after) }),
  };
  uniteCampaigns(contact, one, other);
  return contact;
}

export function countField(state: Contacts, field: string, by: 1 | -1): void {
  const people = (state.fields.get(field) ?? 0) + by;
  if (people > 0) state.fields.set(field, people);
  else state.fields.delete(field);
}
