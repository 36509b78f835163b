import type { Recipient } from "../../events/outreach.ts";
import { findContact, type Contact, type Contacts } from "../../projections/contacts.ts";
import { parseRecipients } from "../outreach/recipients-file.ts";
import { usageError } from "./command.ts";

/** Digits of the ids that the network gives today; fewer may be a handle. */
const ID = /^\d{16,19}$/;

/** A person as an operator names them: `@handle`, a handle, a profile's address, or a numeric id. */
export function recipientOf(subject: string): Recipient {
  if (ID.test(subject)) return { id: subject };
  const parsed = parseRecipients(JSON.stringify([{ username: subject }]), "json");
  const username = parsed.rows[0]?.recipient.username;
  if (username === undefined) throw usageError(parsed.refused[0]?.reason ?? "that is no handle");
  return { username };
}

/** A known person by what an operator calls them; digits are an id before they are a handle. */
export function findPerson(contacts: Contacts, subject: string): Contact | undefined {
  const byId = /^\d+$/.test(subject) ? findContact(contacts, { id: subject }) : undefined;
  return byId ?? findContact(contacts, recipientOf(subject));
}
