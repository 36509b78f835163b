import { findContact, type Contacts } from "../../projections/contacts.ts";
import { STREAMS, type EventMetadata } from "../log/event-log.ts";
import { handle, type AppendDecision, type HandleDeps } from "../log/decide-and-append.ts";
import { recipientAmong } from "./resolve-recipient.ts";

/** Why a recipient gets no second try after a failed message. */
export type RetryRefusal = "unknown_recipient" | "suppressed" | "nothing_to_retry";

/** Allows one more message to a recipient whose last one failed. */
export function decideRetry(contacts: Contacts, name: string): AppendDecision<RetryRefusal> {
  const recipient = recipientAmong(contacts, name);
  const contact = findContact(contacts, recipient);
  if (contact === undefined) return { refusal: "unknown_recipient" };
  if (contact.suppressed) return { refusal: "suppressed" };
  if (contact.status !== "failed") return { refusal: "nothing_to_retry" };
  return { events: [{ type: "RecipientRetryAllowed", data: { recipient } }] };
}

/**
 * Lets the next run retry a recipient, unless they are suppressed, even if that happens at this moment. Returns why
 * not; undefined if it is allowed. Throws a ServiceError (usage) for an invalid name, and what {@link handle} throws.
 */
export async function allowRetry(deps: HandleDeps, name: string, metadata: EventMetadata) {
  const decide = (): AppendDecision<RetryRefusal> => decideRetry(deps.projector.state("contacts"), name);
  const handled = await handle(deps, STREAMS.outreach, decide, { metadata });
  return "refusal" in handled ? handled.refusal : undefined;
}
