import type { Recipient } from "../../events/outreach.ts";
import { findContact } from "../../projections/contact-identity.ts";
import type { Contacts } from "../../projections/contact.ts";
import { type EventMetadata, type NewEvent, type StateContext, STREAMS } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import type { SocialNetwork } from "../networks/network.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";
import type { SuppressionRecord } from "./file/suppression-row.ts";
import { within } from "../platform/clock.ts";
import { recipientAmong } from "./resolve-recipient.ts";

export interface SuppressContext extends StateContext {
  readonly hashesOf: HashesOf;
  /** Account by which the network is asked who has a handle. Undefined if no network can be asked. */
  readonly account?: NamingAccount | undefined;
}

/** Account whose token is used to ask the network about a handle. */
export interface NamingAccount {
  readonly network: { readonly usersByUsername: SocialNetwork["usersByUsername"] };
  readonly tokens: { use<T>(call: (token: string) => Promise<T>): Promise<T> };
}

/** Suppression to record: the recipient and the reason. Without `recipient`, they are known by `hash` alone. */
export interface Suppression extends SuppressionRecord {
  /** Id of the reply in which the recipient asked for the suppression. */
  readonly message_id?: string;
  /** How the reply was found; absent if a run read it. */
  readonly via?: "stream";
  readonly recipient?: Recipient;
  readonly hash?: string;
}

/**
 * Suppresses a recipient by the hashes of all known names, so that none identifies them after an erasure. Decides
 * nothing if the log holds the hashes of the given names and no unsuppressed contact has them: the first record stays.
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
 * Creates a function that suppresses by name those recipients whose hash the log holds, with the hashes of all their
 * names. A handle may change, and the log lacks the hash of the next one.
 */
export function createNaming(hashesOf: HashesOf) {
  const decide = createDecision(hashesOf);
  return (contacts: Contacts, recipients: readonly Recipient[]): readonly NewEvent<"RecipientSuppressed">[] => {
    const isFound = (recipient: Recipient): boolean =>
      isSuppressedByHash(contacts, [recipient, findContact(contacts, recipient) ?? {}], hashesOf);
    return decide(
      contacts,
      recipients.filter(isFound).map((recipient) => ({ recipient, reason: "hash" })),
    );
  };
}

/**
 * Creates a function that decides which suppressions the log lacks, each once. A row that adds nothing to earlier rows
 * is left out.
 */
export function createDecision(hashesOf: HashesOf) {
  const decided = new Set<string>();
  /** Hashes of the names in the decided events. A contact is shown as suppressed only once an event names it. */
  const named = new Set<string>();
  return (contacts: Contacts, suppressions: readonly Suppression[]): readonly NewEvent<"RecipientSuppressed">[] =>
    suppressions.flatMap((suppression) => {
      const { recipient = {} } = suppression;
      const [event] = decideSuppression(contacts, suppression, hashesOf).events;
      if (event === undefined) return [];
      const { hashes = [] } = event.data;
      const names = findContact(contacts, recipient) === undefined ? [] : hashesOf(recipient);
      if (names.every((hash) => named.has(hash)) && hashes.every((hash) => decided.has(hash))) return [];
      for (const hash of names) named.add(hash);
      for (const hash of hashes) decided.add(hash);
      return [event];
    });
}

/**
 * True if the log holds the hash of one of these names. A contact that an event names is suppressed even without a
 * hash.
 */
export function isSuppressedByHash({ hashes }: Contacts, names: readonly Recipient[], hashesOf: HashesOf): boolean {
  return hashes.size > 0 && names.flatMap(hashesOf).some((hash) => hashes.has(hash));
}

/**
 * Suppresses a recipient for an operator, and resolves when the projections hold it. `repeated`: the log held the
 * suppression before. Throws a ServiceError (usage) for an invalid name, and what the store's append throws.
 */
export async function suppress(context: SuppressContext, name: string, metadata: EventMetadata) {
  const { eventLog, projector, hashesOf } = context;
  await projector.until((await eventLog.store.streamHead(STREAMS.outreach)).position);
  const decide = (recipient: Recipient) =>
    decideSuppression(projector.state("contacts"), { recipient, reason: "by_hand" }, hashesOf).events;
  const recipient = recipientAmong(projector.state("contacts"), name);
  /** True if a contact had the name before. */
  const isKnown = findContact(projector.state("contacts"), recipient) !== undefined;
  const events = decide(recipient);
  if (events.length > 0) await record(context, STREAMS.outreach, events, { metadata });
  // Recorded before the network is asked, which may take a while.
  const user = await findUser(context, recipient);
  const more = user === undefined ? [] : decide({ id: user.id, username: user.username });
  if (more.length > 0) await record(context, STREAMS.outreach, more, { metadata });
  return { isKnown, repeated: events.length + more.length === 0 };
}

/** Longest time that an operator waits for the network, in ms. A read that is answered takes less than a second. */
const FIND_MS_MAX = 5_000;

/**
 * Asks the network who has a handle whose id the log does not know, because handles change and ids do not. Undefined if
 * the id is known or the network did not say.
 */
async function findUser({ projector, account }: SuppressContext, { id, username }: Recipient) {
  if (account === undefined || id !== undefined || username === undefined) return undefined;
  if (findContact(projector.state("contacts"), { username })?.id !== undefined) return undefined;
  const asked = account.tokens.use((token) => account.network.usersByUsername(token, [username]));
  try {
    const users = await within(FIND_MS_MAX, asked);
    return users?.find((user) => user.username.toLowerCase() === username.toLowerCase());
  } catch {
    return undefined;
  }
}

/** Digits of the name of a hash key. By them an import knows if a list's hashes can match here. */
const KEY_DIGITS = 8;

/** Placeholder for a recipient, whose hash names the hash key: no id of the network begins with a zero. */
const NO_RECIPIENT: Recipient = { id: "0" };

/** Returns a name of the hash key that does not reveal the key. */
export function nameHashKey(hashesOf: HashesOf): string {
  const [hash = ""] = hashesOf(NO_RECIPIENT);
  return Buffer.from(hash, "base64url").toString("hex").slice(0, KEY_DIGITS);
}
