import type { Recipient } from "../../events/outreach.ts";
import { findContact, toRecipient, type Contacts } from "../../projections/contacts.ts";
import { STREAMS, type EventMetadata } from "../log/event-log.ts";
import { handle, type AppendDecision, type HandleDeps } from "../log/decide-and-append.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { recipientAmong } from "./resolve-recipient.ts";

/** Finds the held recipients, in the order in which they were met, with the time of each one's reply (ISO 8601). */
export function* findHeld({ people }: Contacts) {
  const found: ({ held_at?: string } & Recipient)[] = [];
  for (const contact of people.values()) {
    if (contact.held) found.push({ ...toRecipient(contact), ...omitUndefined({ held_at: contact.held_at }) });
    yield;
  }
  return found;
}

/** Why a release is refused. */
export type ReleaseRefusal = "unknown_recipient" | "suppressed";

/** Decides nothing for a recipient who is not held. */
export function decideRelease(contacts: Contacts, name: string): AppendDecision<ReleaseRefusal> {
  const recipient = recipientAmong(contacts, name);
  const contact = findContact(contacts, recipient);
  if (contact === undefined) return { refusal: "unknown_recipient" };
  if (contact.suppressed) return { refusal: "suppressed" };
  return { events: contact.held ? [{ type: "RecipientReleased", data: { recipient } }] : [] };
}

/**
 * Lets runs contact a held recipient again, unless they are suppressed. Returns why not; undefined if they may. Throws
 * a ServiceError (usage) for an invalid name, and what {@link handle} throws.
 */
export async function release(deps: HandleDeps, name: string, metadata: EventMetadata) {
  const decide = (): AppendDecision<ReleaseRefusal> => decideRelease(deps.projector.state("contacts"), name);
  const handled = await handle(deps, STREAMS.outreach, decide, { metadata });
  return "refusal" in handled ? handled.refusal : undefined;
}
