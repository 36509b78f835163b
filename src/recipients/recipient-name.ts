import type { Recipient } from "../../events/outreach.ts";
import { findContact, type Contact, type Contacts } from "../../projections/contacts.ts";
import { ServiceError } from "../platform/service-error.ts";
import { readHandle } from "./file/identity.ts";

/** Digits of the ids that the network gives today; fewer may be a handle. */
const ID = /^\d{16,19}$/;

/**
 * Parses a recipient as an operator names them: `@handle`, a handle, a profile's address, or a numeric id. Throws a
 * ServiceError (usage) for anything else.
 */
export function recipientOf(subject: string): Recipient {
  const named = read(subject);
  if (typeof named === "string") throw new ServiceError("usage", named);
  return named;
}

/** The same among those who are known: digits are an id before they are a handle. */
export function recipientAmong(contacts: Contacts, subject: string): Recipient {
  const isId = /^\d+$/.test(subject) && findContact(contacts, { id: subject }) !== undefined;
  return isId ? { id: subject } : recipientOf(subject);
}

/** A known person by what an operator calls them. Throws as {@link recipientOf} does. */
export function findNamed(contacts: Contacts, subject: string): Contact | undefined {
  return findContact(contacts, recipientAmong(contacts, subject));
}

function read(subject: string): Recipient | string {
  if (ID.test(subject)) return { id: subject };
  const username = readHandle(subject);
  if (typeof username === "object") return username.fault;
  return username === undefined ? "neither a username nor an id" : { username };
}
