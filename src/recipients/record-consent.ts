import { isDeepStrictEqual } from "node:util";
import type { Recipient } from "../../events/outreach.ts";
import { KEYS_PER_EVENT_MAX } from "../../events/personal.ts";
import { personalLinkOwner } from "../../events/tracking.ts";
import { consentAfter, type ConsentRecord, findMissingEvidence } from "../../projections/consent.ts";
import { type Contacts, entriesOf, findPerson } from "../../projections/contacts.ts";
import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { handle, type HandleDeps, type HandleOptions } from "../log/decide-and-append.ts";
import { recipientAmong } from "./resolve-recipient.ts";
import { ALL_OF } from "../platform/counts-and-lists.ts";

/**
 * Finds the keys whose deletion erases the clicks on personal links with these codes. Skips codes whose owner was
 * erased.
 */
export type FindLinkKeys = (codes: readonly string[]) => readonly string[];

export function createFindLinkKeys({ refsOf, isForgotten }: LinkOwners): FindLinkKeys {
  return (codes) => {
    const owners = codes.map((code) => ({ id: personalLinkOwner(code).id }));
    return owners.filter((owner) => !isForgotten(owner)).flatMap(refsOf);
  };
}

/** The part of the keyring that is needed here. */
interface LinkOwners {
  readonly refsOf: (who: Recipient) => readonly string[];
  readonly isForgotten: (who: Recipient) => boolean;
}

export interface RecordConsentDeps extends HandleDeps {
  readonly findLinkKeys: FindLinkKeys;
}

/**
 * Records a recipient's consent from now on, unless the contact already has it. Erases clicks if the record does not
 * grant tracking.
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
  const { basis, consent, tracking } = contact ?? {};
  const isRecorded = contact && isDeepStrictEqual(consentAfter(contact, record), { basis, consent, tracking });
  if (isRecorded === true) return { events: erasures };
  return { events: [{ type: "ConsentRecorded", data: { recipient, ...record } }, ...erasures] };
}

/** Describes the missing evidence of a consent; undefined if nothing is missing. */
export function describeMissingEvidence(consent: Parameters<typeof findMissingEvidence>[0]): string | undefined {
  const missing = findMissingEvidence(consent);
  if (missing.length === 0) return undefined;
  return `${ALL_OF.format(missing)} ${missing.length === 1 ? "is" : "are"} missing`;
}

/**
 * Returns the codes of the recipient's own links if the record does not grant tracking, also of links under their other
 * names.
 */
export function findRevokedLinks(contacts: Contacts, recipient: Recipient, { tracking }: ConsentRecord) {
  if (tracking === undefined || tracking === "granted") return [];
  return entriesOf(contacts, recipient).flatMap(({ personal_links }) => personal_links);
}

/**
 * Erases the remaining clicks on own links of recipients who do not grant tracking. A denial may have been recorded
 * under a handle that only a later event shows to be theirs. Throws what {@link handle} throws.
 */
export async function eraseLeftClicks(deps: RecordConsentDeps, options: Pick<HandleOptions, "metadata" | "lease">) {
  const decide = () => {
    const denied = [...deps.projector.state("contacts").people.values()].filter(
      ({ personal_links, tracking }) => personal_links.length > 0 && tracking.status !== "granted",
    );
    return { events: eraseClicks(deps.findLinkKeys(denied.flatMap(({ personal_links }) => personal_links))) };
  };
  await handle(deps, STREAMS.outreach, decide, options);
}

/**
 * Returns the events that delete these keys, so that the clicks encrypted with them can no longer be read. They are
 * appended with a revocation.
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
  deps: RecordConsentDeps,
  name: string,
  record: ConsentRecord,
  metadata: EventMetadata,
) {
  const { projector, findLinkKeys } = deps;
  const findNow = () => findPerson(projector.state("contacts"), recipientAmong(projector.state("contacts"), name));
  /** False if no contact had the name yet. */
  let isKnown = false;
  const decide = () => {
    isKnown = findNow() !== undefined;
    return decideConsent(projector.state("contacts"), name, record, findLinkKeys);
  };
  const handled = await handle(deps, STREAMS.outreach, decide, { metadata });
  /** True if the log held as much before. */
  const repeated = "events" in handled && handled.events.length === 0;
  // `contact` is undefined if the recipient was erased.
  return { isKnown, repeated, contact: findNow() };
}
