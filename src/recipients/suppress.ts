import { createHmac } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";
import { type Contacts, findContact } from "../../projections/contacts.ts";
import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { type HandleDeps, record } from "../log/decide-and-append.ts";
import type { SuppressionRecord } from "./file/suppression-row.ts";
import { recipientAmong } from "./resolve-recipient.ts";

export interface SuppressDeps extends Pick<HandleDeps, "eventLog" | "projector"> {
  readonly hashesOf: HashesOf;
}

/** The recipient of a suppression, and the reason; without `recipient` they are known by `hash` alone. */
export interface Suppression extends SuppressionRecord {
  readonly recipient?: Recipient;
  readonly hash?: string;
}

/**
 * Suppresses a recipient for good. All their known names are hashed, so that after an erasure none of them identifies the
 * recipient. Decides nothing where the log holds the hashes of the names that are given, and no contact has them that is not
 * suppressed: what was recorded first stays.
 */
export function decideSuppression(
  contacts: Contacts,
  { recipient, hash, ...record }: Suppression,
  hashesOf: HashesOf,
): { readonly events: readonly NewEvent<"RecipientSuppressed">[] } {
  const contact = recipient && findContact(contacts, recipient);
  const given = [...hashesOf(recipient ?? {}), ...(hash === undefined ? [] : [hash])];
  if (contact?.suppressed !== false && given.every((one) => contacts.hashes.has(one))) return { events: [] };
  const hashes = [...new Set([...given, ...hashesOf(contact ?? {})])];
  const named = recipient === undefined ? {} : { recipient };
  return { events: [{ type: "RecipientSuppressed", data: { ...named, ...record, hashes } }] };
}

/**
 * Suppresses a recipient for an operator, whatever else is appended meanwhile. Resolves when the projections hold it;
 * `isKnown` false: no contact has the name yet; `repeated`: the log held as much before. Throws a ServiceError (usage) for
 * an invalid name, and what the store's append throws.
 */
export async function suppress(deps: SuppressDeps, name: string, metadata: EventMetadata) {
  const { eventLog, projector, hashesOf } = deps;
  await projector.until((await eventLog.store.streamHead(STREAMS.outreach)).position);
  const contacts = projector.state("contacts");
  const recipient = recipientAmong(contacts, name);
  const isKnown = findContact(contacts, recipient) !== undefined;
  const { events } = decideSuppression(contacts, { recipient, reason: "by_hand" }, hashesOf);
  if (events.length > 0) await record(deps, STREAMS.outreach, events, { metadata });
  return { isKnown, repeated: events.length === 0 };
}

/** The keyed hashes of all names that are given of a recipient. */
export type HashesOf = (recipient: Recipient) => readonly string[];

/**
 * Keyed hashes (HMAC-SHA-256, base64url) of a recipient's id and handle, as far as known. A suppression keeps them, so that
 * it still holds when everything else about the recipient was erased; without the key, the stable one of that purpose, they
 * say nothing.
 */
export function createSuppressionHashes(key: Uint8Array): HashesOf {
  // An id and a handle of the same characters are two recipients.
  const hash = (kind: "id" | "handle", value: string): string =>
    createHmac("sha256", key).update(`${kind}\n${value}`, "utf8").digest("base64url");
  return ({ id, username }) => [
    ...(id === undefined ? [] : [hash("id", id)]),
    ...(username === undefined ? [] : [hash("handle", username.toLowerCase())]),
  ];
}

/** Digits that tell the keys of logs apart: of a list's rows they say whether its hashes match anything here. */
const KEY_DIGITS = 8;

/** No id of the network begins with a zero. */
const NO_RECIPIENT: Recipient = { id: "0" };

/** Names the key of these hashes, and says nothing of it. */
export function nameHashKey(hashesOf: HashesOf): string {
  const [hash = ""] = hashesOf(NO_RECIPIENT);
  return Buffer.from(hash, "base64url").toString("hex").slice(0, KEY_DIGITS);
}
