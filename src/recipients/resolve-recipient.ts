import { Type } from "@sinclair/typebox";
import type { Recipient } from "../../events/outreach.ts";
import { findContact } from "../../projections/contact-identity.ts";
import type { Contact, Contacts } from "../../projections/contact-state.ts";
import { usageError } from "../platform/service-error.ts";
import { readHandle } from "./file/id-and-handle.ts";

/** Schema of the text by which an operator names a recipient. */
export const recipientName = Type.String({
  pattern: String.raw`^(@?[A-Za-z0-9_]{1,15}|[0-9]{16,19}|(https?://)?((www|mobile|m)\.)?(x|twitter)\.com/@?[A-Za-z0-9_]{1,15}([/?#].{0,200})?)$`,
  description: "An id, a handle, @handle or the address of a profile.",
  examples: ["@sara_sells", "1786543210987654321"],
});

/** Schema of a recipient in an answer. A name that the log does not know is absent. */
export const recipientAnswer = Type.Object({
  id: Type.Optional(Type.String({ examples: ["2244994945"] })),
  username: Type.Optional(Type.String({ examples: ["ada_builds"] })),
});

/** Matches a number with as many digits as the network's ids have. A shorter number may be a handle. */
const ID = /^\d{16,19}$/;

/**
 * Parses a recipient as an operator names them: `@handle`, a handle, a profile's address, or a numeric id. Throws a
 * ServiceError (usage) for anything else.
 */
export function parseRecipient(name: string): Recipient {
  if (ID.test(name)) return { id: name };
  const username = readHandle(name) ?? { fault: "neither a username nor an id" };
  if (typeof username === "object") throw usageError(username.fault);
  return { username };
}

/**
 * Parses a recipient as {@link parseRecipient} does, except that a number of any length counts as an id if a known
 * recipient has it.
 */
export function recipientAmong(contacts: Contacts, name: string): Recipient {
  const isId = /^\d+$/.test(name) && findContact(contacts, { id: name }) !== undefined;
  return isId ? { id: name } : parseRecipient(name);
}

/** Finds a known recipient by an operator's name for them. Throws as {@link parseRecipient} does. */
export function findNamed(contacts: Contacts, name: string): Contact | undefined {
  return findContact(contacts, recipientAmong(contacts, name));
}
