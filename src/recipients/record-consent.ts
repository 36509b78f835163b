import { isDeepStrictEqual } from "node:util";
import type { Recipient } from "../../events/outreach.ts";
import { KEYS_PER_EVENT_MAX } from "../../events/personal.ts";
import { personalLinkOwner } from "../../events/tracking.ts";
import { consentAfter, type ConsentRecord, findMissingEvidence } from "../../projections/consent.ts";
import { type Contact, type Contacts, entriesOf, findPerson } from "../../projections/contacts.ts";
import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { handle, type HandleDeps } from "../log/handle.ts";
import { recipientAmong } from "./recipient-name.ts";

/** Finds the refs of the keys that encrypt the clicks by personal links of these codes. */
export type FindLinkKeys = (codes: readonly string[]) => readonly string[];

export function createFindLinkKeys(keyring: { readonly refsOf: (who: Recipient) => readonly string[] }): FindLinkKeys {
  return (codes) => codes.flatMap((code) => keyring.refsOf({ id: personalLinkOwner(code).id }));
}

export interface RecordConsentDeps extends HandleDeps {
  readonly findLinkKeys: FindLinkKeys;
}

export interface RecordedConsent {
  /** False: it holds for the name, which no contact had yet. */
  readonly isKnown: boolean;
  /** The log held as much before. */
  readonly repeated: boolean;
  /** Who has the name now; undefined: the recipient was erased. */
  readonly contact: Contact | undefined;
}

/** What a recipient's consent is from now on. Decides nothing where the contact holds as much already. */
export function decideConsent(
  contacts: Contacts,
  name: string,
  record: ConsentRecord,
  findLinkKeys: FindLinkKeys,
): { readonly events: readonly NewEvent[] } {
  const recipient = recipientAmong(contacts, name);
  const contact = findPerson(contacts, recipient);
  if (contact !== undefined && isRecorded(contact, record)) return { events: [] };
  const recorded: NewEvent = { type: "ConsentRecorded", data: { recipient, ...record } };
  const revoked = findRevokedLinks(contacts, recipient, record);
  return { events: [recorded, ...eraseClicks(findLinkKeys(revoked))] };
}

function isRecorded(contact: Contact, record: ConsentRecord): boolean {
  const { basis, consent, tracking } = contact;
  return isDeepStrictEqual(consentAfter(contact, record), { basis, consent, tracking });
}

/** `consent_at and consent_source`. */
const ALL_OF = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** What a consent lacks to be proved; undefined: nothing. */
export function describeMissingEvidence(consent: Parameters<typeof findMissingEvidence>[0]): string | undefined {
  const missing = findMissingEvidence(consent);
  if (missing.length === 0) return undefined;
  return `${ALL_OF.format(missing)} ${missing.length === 1 ? "is" : "are"} missing`;
}

/** Codes of the recipient's own links, if the record revokes that tracking was granted. */
export function findRevokedLinks(
  contacts: Contacts,
  recipient: Recipient,
  { tracking }: ConsentRecord,
): readonly string[] {
  if (tracking === undefined || tracking === "granted") return [];
  const entries = entriesOf(contacts, recipient);
  const wasGranted = entries.some((entry) => entry.tracking.status === "granted");
  return wasGranted ? entries.flatMap(({ personal_links }) => personal_links) : [];
}

/** What is appended with a revocation: the clicks that these keys encrypt can no longer be read then. */
export function eraseClicks(keys: readonly string[]): readonly NewEvent[] {
  const events: NewEvent[] = [];
  for (let at = 0; at < keys.length; at += KEYS_PER_EVENT_MAX) {
    const named = keys.slice(at, at + KEYS_PER_EVENT_MAX);
    events.push({ type: "PersonForgotten", data: { hashes: [], keys: named, scope: "tracking" } });
  }
  return events;
}

/**
 * Records a recipient's consent for an operator. Resolves when the projections hold it. Throws a ServiceError (usage) for
 * an invalid name, and what {@link handle} throws.
 */
export async function recordConsent(
  deps: RecordConsentDeps,
  name: string,
  record: ConsentRecord,
  metadata: EventMetadata,
): Promise<RecordedConsent> {
  const { projector, findLinkKeys } = deps;
  const findNow = () => findPerson(projector.state("contacts"), recipientAmong(projector.state("contacts"), name));
  let isKnown = false;
  const decide = () => {
    isKnown = findNow() !== undefined;
    return decideConsent(projector.state("contacts"), name, record, findLinkKeys);
  };
  const handled = await handle(deps, STREAMS.outreach, decide, { metadata });
  const repeated = "events" in handled && handled.events.length === 0;
  return { isKnown, repeated, contact: findNow() };
}
