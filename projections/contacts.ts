import type { Folded } from "../events/catalog.ts";
import type { Basis, Recipient, SkipReason } from "../events/outreach.ts";
import type { Projection } from "./projection.ts";

/** How far we got with a person. `open` to a message; everything else is not tried (again) by itself. */
export type ContactStatus = "open" | "attempted" | "in_doubt" | "sent" | "failed";

/** One person: imported, met by a run, or both. */
export interface Contact {
  id?: string;
  username?: string;
  name?: string;
  basis: Basis;
  fields: Record<string, string>;
  /** Imported by the operator, so part of the `list` source. */
  listed: boolean;
  status: ContactStatus;
  suppressed: boolean;
  /** Skips that the log tells already: each is told once. */
  skipped: SkipReason[];
}

/** Everybody we know of, each found by id and by handle. */
export interface Contacts {
  /** Key -> person, in the order they were met. */
  people: Map<string, Contact>;
  /** Network id -> key. */
  ids: Map<string, string>;
  /** Lower-case handle -> key. */
  handles: Map<string, string>;
  /** Name of a template field -> how many imported people have it. */
  fields: Map<string, number>;
}

export const contacts: Projection<Contacts> = {
  name: "contacts",
  version: 2,
  types: [
    "RecipientAdded",
    "RecipientSuppressed",
    "RecipientRetryAllowed",
    "DirectMessageAttempted",
    "DirectMessageSent",
    "DirectMessageSkipped",
    "DirectMessageFailed",
    "DirectMessageInDoubt",
  ],
  initial: () => ({ people: new Map(), ids: new Map(), handles: new Map(), fields: new Map() }),
  evolve(state, event) {
    if (contacts.types.includes(event.type)) evolveContact(state, event);
    return state;
  },
};

/** Finds a person by id, else by handle. */
export function findContact(state: Contacts, who: Recipient): Contact | undefined {
  const key = keyOf(state, who);
  return key === undefined ? undefined : state.people.get(key);
}

function evolveContact(state: Contacts, event: Folded): void {
  switch (event.type) {
    case "RecipientAdded":
      return add(state, event.data);
    case "RecipientSuppressed":
      meet(state, event.data.recipient).suppressed = true;
      return;
    case "RecipientRetryAllowed":
      meet(state, event.data.recipient).status = "open";
      return;
    case "DirectMessageSkipped":
      return skip(meet(state, event.data.recipient), event.data.reason);
    case "DirectMessageAttempted":
      meet(state, event.data.recipient).status = "attempted";
      return;
    case "DirectMessageSent":
      meet(state, event.data.recipient).status = "sent";
      return;
    case "DirectMessageInDoubt":
      meet(state, event.data.recipient).status = "in_doubt";
      return;
    case "DirectMessageFailed":
      meet(state, event.data.recipient).status = event.data.retry ? "open" : "failed";
      return;
    default:
  }
}

function add(state: Contacts, added: Extract<Folded, { type: "RecipientAdded" }>["data"]): void {
  const contact = meet(state, added.recipient);
  for (const field of Object.keys(contact.fields)) count(state, field, -1);
  for (const field of Object.keys(added.fields)) count(state, field, 1);
  contact.listed = true;
  contact.basis = added.basis;
  contact.fields = added.fields;
  if (added.name !== undefined) contact.name = added.name;
  // What was missing or wrong may be mended by the new row, so it is judged and told afresh.
  contact.skipped = [];
}

function skip(contact: Contact, reason: SkipReason): void {
  if (!contact.skipped.includes(reason)) contact.skipped.push(reason);
}

function count(state: Contacts, field: string, by: 1 | -1): void {
  const people = (state.fields.get(field) ?? 0) + by;
  if (people > 0) state.fields.set(field, people);
  else state.fields.delete(field);
}

/** The person of this event, made or merged when id and handle turn out to be one. */
function meet(state: Contacts, who: Recipient): Contact {
  const byId = who.id === undefined ? undefined : state.ids.get(who.id);
  const byHandle = keyOfHandle(state, who);
  const key = byId ?? byHandle ?? keyFor(who);
  let contact = state.people.get(key);
  if (contact === undefined) {
    contact = { basis: "none", fields: {}, listed: false, status: "open", suppressed: false, skipped: [] };
    state.people.set(key, contact);
  }
  if (byHandle !== undefined && byHandle !== key) absorb(state, contact, byHandle);
  name(state, key, contact, who);
  return contact;
}

/** The key a handle leads to, unless that person is known by another id: handles change hands. */
function keyOfHandle(state: Contacts, who: Recipient): string | undefined {
  if (who.username === undefined) return undefined;
  const key = state.handles.get(who.username.toLowerCase());
  const known = key === undefined ? undefined : state.people.get(key)?.id;
  return known !== undefined && who.id !== undefined && known !== who.id ? undefined : key;
}

function keyOf(state: Contacts, who: Recipient): string | undefined {
  return (who.id === undefined ? undefined : state.ids.get(who.id)) ?? keyOfHandle(state, who);
}

function keyFor(who: Recipient): string {
  return who.id ?? `@${(who.username ?? "").toLowerCase()}`;
}

function name(state: Contacts, key: string, contact: Contact, who: Recipient): void {
  if (who.id !== undefined) {
    contact.id = who.id;
    state.ids.set(who.id, key);
  }
  if (who.username !== undefined) {
    contact.username = who.username;
    state.handles.set(who.username.toLowerCase(), key);
  }
}

/** How much a status forbids: the stricter of two wins when two entries are one person. */
const STRICTNESS: readonly ContactStatus[] = ["open", "failed", "attempted", "in_doubt", "sent"];

const CONSENT: readonly Basis[] = ["none", "opt_in", "dm_first"];

/** Two entries turned out to be one person: whatever forbids a message stays, and so does a recorded consent. */
function absorb(state: Contacts, into: Contact, otherKey: string): void {
  const other = state.people.get(otherKey);
  if (other === undefined) return;
  state.people.delete(otherKey);
  if (STRICTNESS.indexOf(other.status) > STRICTNESS.indexOf(into.status)) into.status = other.status;
  if (CONSENT.indexOf(other.basis) > CONSENT.indexOf(into.basis)) into.basis = other.basis;
  into.suppressed ||= other.suppressed;
  into.listed ||= other.listed;
  for (const field of Object.keys(other.fields)) if (Object.hasOwn(into.fields, field)) count(state, field, -1);
  into.fields = { ...other.fields, ...into.fields };
  if (into.name === undefined && other.name !== undefined) into.name = other.name;
  for (const reason of other.skipped) skip(into, reason);
}
