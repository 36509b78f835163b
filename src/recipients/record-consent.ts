import { isDeepStrictEqual } from "node:util";
import type { Recipient } from "../../events/outreach.ts";
import { KEYS_PER_EVENT_MAX } from "../../events/erasure.ts";
import { consentAfter, type ConsentRecord, findMissingEvidence } from "../../projections/consent.ts";
import { entriesOf, findPerson } from "../../projections/contact-identity.ts";
import type { Contacts } from "../../projections/contact-state.ts";
import { type EventMetadata, type NewEvent, type StateContext, STREAMS } from "../log/event-log.ts";
import { handle, type HandleOptions } from "../log/decide-and-append.ts";
import type { FindLinkKeys } from "../privacy/person-keys.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { recipientAmong } from "./resolve-recipient.ts";
import { ALL_OF } from "../platform/format-numbers-and-lists.ts";

export interface ConsentContext extends StateContext {
  readonly findLinkKeys: FindLinkKeys;
}

/**
 * Decides to record a recipient's consent; no event if the log holds the same one. If the record does not grant
 * tracking, the recipient's recorded clicks are erased as well.
 */
export function decideConsent(
  contacts: Contacts,
  name: string,
  record: ConsentRecord,
  findLinkKeys: FindLinkKeys,
): { readonly events: readonly NewEvent[] } {
  const recipient = recipientAmong(contacts, name);
  const contact = findPerson(contacts, recipient);
  const erasures = eraseClicks(findLinkKeys(findRevokedLinks(contacts, recipient, record)));
  const { basis, consent, tracking, consents_for } = contact ?? {};
  const before = { basis, consent, tracking, ...omitUndefined({ consents_for }) };
  const isRecorded = contact && isDeepStrictEqual(consentAfter(contact, record), before);
  if (isRecorded === true) return { events: erasures };
  return { events: [{ type: "ConsentRecorded", data: { recipient, ...record } }, ...erasures] };
}

/** Describes the evidence that a consent lacks, such as its date; undefined if nothing is missing. */
export function describeMissingEvidence(consent: Parameters<typeof findMissingEvidence>[0]): string | undefined {
  const missing = findMissingEvidence(consent);
  if (missing.length === 0) return undefined;
  return `${ALL_OF.format(missing)} ${missing.length === 1 ? "is" : "are"} missing`;
}

/**
 * Returns the codes of the recipient's own links, also of those sent to their other names; empty if the record grants
 * tracking or does not mention it.
 */
export function findRevokedLinks(contacts: Contacts, recipient: Recipient, { tracking }: ConsentRecord) {
  if (tracking === undefined || tracking === "granted") return [];
  return entriesOf(contacts, recipient).flatMap(({ personal_links }) => personal_links);
}

/**
 * Erases clicks on the own links of recipients who do not permit tracking. An earlier denial may have left some, if it
 * named a handle before the log showed which recipient has it. Throws what {@link handle} throws.
 */
export async function eraseLeftClicks(context: ConsentContext, options: HandleOptions) {
  const decide = () => {
    const denied = [...context.projector.state("contacts").people.values()].filter(
      ({ personal_links, tracking }) => personal_links.length > 0 && tracking.status !== "granted",
    );
    return { events: eraseClicks(context.findLinkKeys(denied.flatMap(({ personal_links }) => personal_links))) };
  };
  await handle(context, STREAMS.outreach, decide, options);
}

/**
 * Returns the events that delete these encryption keys, so that the clicks encrypted with them can no longer be read.
 * They are appended with a revocation of tracking.
 */
export function eraseClicks(keys: readonly string[]): readonly NewEvent[] {
  const events: NewEvent[] = [];
  for (let at = 0; at < keys.length; at += KEYS_PER_EVENT_MAX) {
    const named = keys.slice(at, at + KEYS_PER_EVENT_MAX);
    events.push({ type: "PersonForgotten", data: { hashes: [], keys: named, scope: "tracking" } });
  }
  return events;
}

/**
 * Records a recipient's consent for an operator, and resolves when the projections hold it. Throws a ServiceError
 * (usage) for an invalid name, and what {@link handle} throws.
 */
export async function recordConsent(
  context: ConsentContext,
  name: string,
  record: ConsentRecord,
  metadata: EventMetadata,
) {
  const { projector, findLinkKeys } = context;
  const findNow = () => findPerson(projector.state("contacts"), recipientAmong(projector.state("contacts"), name));
  /**
   * True if the recipient was known before the consent was recorded. If not, the answer warns that no recipient of that
   * name is known yet.
   */
  let isKnown = false;
  const decide = () => {
    isKnown = findNow() !== undefined;
    return decideConsent(projector.state("contacts"), name, record, findLinkKeys);
  };
  const handled = await handle(context, STREAMS.outreach, decide, { metadata });
  /** True if the log already held this consent, so that no event was appended. */
  const repeated = "events" in handled && handled.events.length === 0;
  // `contact` is undefined if the recipient was erased.
  return { isKnown, repeated, contact: findNow() };
}
