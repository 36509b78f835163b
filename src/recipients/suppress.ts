import type { Recipient } from "../../events/outreach.ts";
import { findContact } from "../../projections/contact-identity.ts";
import type { Contacts } from "../../projections/contact-state.ts";
import { type EventMetadata, type NewEvent, type StateContext, STREAMS } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import type { SocialNetwork } from "../networks/network.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";
import type { SuppressionRecord } from "./file/suppression-row.ts";
import { within } from "../platform/clock-ids-and-timers.ts";
import { recipientAmong } from "./resolve-recipient.ts";

export interface SuppressContext extends StateContext {
  readonly hashesOf: HashesOf;
  /**
   * Account whose token is used to ask the network for the owner of a handle. Undefined if the network cannot be asked.
   */
  readonly account?: NamingAccount | undefined;
}

/** Account whose token is used to ask the network about a handle. */
export interface NamingAccount {
  readonly network: { readonly usersByUsername: SocialNetwork["usersByUsername"] };
  readonly tokens: { use<T>(call: (token: string) => Promise<T>): Promise<T> };
}

/** A suppression to record. Without `recipient`, the recipient is known by `hash` alone. */
export interface Suppression extends SuppressionRecord {
  /** Id of the message in which the recipient opted out. */
  readonly message_id?: string;
  /** How the message arrived: by the network's stream of signals; absent if it was read in the inbox. */
  readonly via?: "stream";
  readonly recipient?: Recipient;
  readonly hash?: string;
}

/**
 * Decides to suppress a recipient by the hashes of all their known names, which still identify them after an erasure.
 * No event if the log holds the given names' hashes already, and the contact, if known, is suppressed.
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
 * Creates a function that decides to suppress by name each recipient whose hash the log holds. After a change of handle
 * the old hash no longer fits, so all names are recorded.
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
 * Creates a function that decides which of these suppressions to append. Leaves out a suppression that adds nothing to
 * the earlier ones.
 */
export function createDecision(hashesOf: HashesOf) {
  const decided = new Set<string>();
  /**
   * Hashes of names in the events decided so far. A contact is suppressed in the projections only if an event names it.
   */
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
 * True if the log holds the suppressed hash of one of these names. A contact that a suppression names counts as
 * suppressed even if this is false.
 */
export function isSuppressedByHash({ hashes }: Contacts, names: readonly Recipient[], hashesOf: HashesOf): boolean {
  return hashes.size > 0 && names.flatMap(hashesOf).some((hash) => hashes.has(hash));
}

/**
 * Suppresses a recipient for an operator, and resolves once the projections hold it. `repeated`: the recipient was
 * suppressed before. Throws a ServiceError (usage) for an invalid name, and what the store's append throws.
 */
export async function suppress(context: SuppressContext, name: string, metadata: EventMetadata) {
  const { eventLog, projector, hashesOf } = context;
  await projector.until((await eventLog.store.streamHead(STREAMS.outreach)).position);
  const decide = (recipient: Recipient) =>
    decideSuppression(projector.state("contacts"), { recipient, reason: "by_hand" }, hashesOf).events;
  const recipient = recipientAmong(projector.state("contacts"), name);
  /** True if the log knew a recipient of this name before. */
  const isKnown = findContact(projector.state("contacts"), recipient) !== undefined;
  const events = decide(recipient);
  if (events.length > 0) await record(context, STREAMS.outreach, events, { metadata });
  // The suppression is recorded first, because the network may take long to answer.
  const user = await findUser(context, recipient);
  const more = user === undefined ? [] : decide({ id: user.id, username: user.username });
  if (more.length > 0) await record(context, STREAMS.outreach, more, { metadata });
  return { isKnown, repeated: events.length + more.length === 0 };
}

/** Maximum time that an operator waits for the network, in ms. It usually answers in less than a second. */
const FIND_MS_MAX = 5_000;

/**
 * Asks the network for the id of a handle, unless the log knows it: a handle may change, the id does not. Undefined if
 * the id is known already or the network did not tell it.
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

/**
 * Number of hexadecimal digits in the name of a hash key. An import compares the names to tell if a list's hashes can
 * match here.
 */
const KEY_DIGITS = 8;

/** Made-up recipient: its hash serves as the name of the hash key. No real id begins with a zero. */
const NO_RECIPIENT: Recipient = { id: "0" };

/** Returns a name for the hash key, from which the key cannot be derived. */
export function nameHashKey(hashesOf: HashesOf): string {
  const [hash = ""] = hashesOf(NO_RECIPIENT);
  return Buffer.from(hash, "base64url").toString("hex").slice(0, KEY_DIGITS);
}
