import type { Recipient } from "../../events/outreach.ts";
import { findContact } from "../../projections/contact-identity.ts";
import { toRecipient, type Contacts } from "../../projections/contact-state.ts";
import { STREAMS, type EventMetadata, type StateContext } from "../log/event-log.ts";
import { handle, type AppendDecision } from "../log/decide-and-append.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { recipientAmong } from "./resolve-recipient.ts";

/**
 * Finds the held recipients, in the order in which the log first mentions them. `held_at`: time of the reply that may
 * be an opt-out, ISO 8601.
 */
export function* findHeld({ people }: Contacts) {
  const found: ({ held_at?: string } & Recipient)[] = [];
  for (const contact of people.values()) {
    if (contact.held) found.push({ ...toRecipient(contact), ...omitUndefined({ held_at: contact.held_at }) });
    yield;
  }
  return found;
}

/** Reason why a held recipient is not released. */
export type ReleaseRefusal = "unknown_recipient" | "suppressed";

/** Decides to release a held recipient; no event for a recipient who is not held. */
export function decideRelease(contacts: Contacts, name: string): AppendDecision<ReleaseRefusal> {
  const recipient = recipientAmong(contacts, name);
  const contact = findContact(contacts, recipient);
  if (contact === undefined) return { refusal: "unknown_recipient" };
  if (contact.suppressed) return { refusal: "suppressed" };
  return { events: contact.held ? [{ type: "RecipientReleased", data: { recipient } }] : [] };
}

/**
 * Releases a held recipient, so that runs may write to them. Returns why not, for example because they are suppressed;
 * undefined if released. Throws a ServiceError (usage) for an invalid name, and what {@link handle} throws.
 */
export async function release(context: StateContext, name: string, metadata: EventMetadata) {
  const decide = (): AppendDecision<ReleaseRefusal> => decideRelease(context.projector.state("contacts"), name);
  const handled = await handle(context, STREAMS.outreach, decide, { metadata });
  return "refusal" in handled ? handled.refusal : undefined;
}
