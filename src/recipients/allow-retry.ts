import { outreachIn } from "../../projections/contact-outreach-by-campaign.ts";
import { findContact } from "../../projections/contact-identity.ts";
import type { Contacts } from "../../projections/contact-state.ts";
import { STREAMS, type EventMetadata, type StateContext } from "../log/event-log.ts";
import { handle, type AppendDecision } from "../log/decide-and-append.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { recipientAmong } from "./resolve-recipient.ts";

/**
 * Reason for which a request to write once more to a recipient is refused. With `nothing_to_retry`, no message to
 * the recipient failed in the campaign.
 */
export type RetryRefusal = "unknown_recipient" | "suppressed" | "nothing_to_retry";

/**
 * Decides to allow one more message to a recipient whose message in the campaign failed. The default is the campaign of
 * the newest message.
 */
export function decideRetry(contacts: Contacts, name: string, campaign?: string): AppendDecision<RetryRefusal> {
  const recipient = recipientAmong(contacts, name);
  const contact = findContact(contacts, recipient);
  if (contact === undefined) return { refusal: "unknown_recipient" };
  if (contact.suppressed) return { refusal: "suppressed" };
  if (outreachIn(contact, campaign ?? contact.campaign)?.status !== "failed") return { refusal: "nothing_to_retry" };
  return { events: [{ type: "RecipientRetryAllowed", data: { recipient, ...omitUndefined({ campaign }) } }] };
}

/**
 * Allows runs to write once more to a recipient whose message failed, unless they are suppressed. Returns why not;
 * undefined if it is allowed. Throws a ServiceError (usage) for an invalid name, and what {@link handle} throws.
 */
export async function allowRetry(
  context: StateContext,
  { recipient, campaign }: { readonly recipient: string; readonly campaign?: string },
  metadata: EventMetadata,
) {
  const decide = (): AppendDecision<RetryRefusal> =>
    decideRetry(context.projector.state("contacts"), recipient, campaign);
  const handled = await handle(context, STREAMS.outreach, decide, { metadata });
  return "refusal" in handled ? handled.refusal : undefined;
}
