import type { DataOf, EventType } from "../../events/event-types-and-codec.ts";
import type { Recipient } from "../../events/outreach.ts";
import { KEYS_PER_EVENT_MAX, type ErasureReason } from "../../events/erasure.ts";
import { personalLinkOwner } from "../../events/clicks-links-conversions.ts";
import { isHeldBy } from "../../projections/contact-identity.ts";
import { positionsAbout, type Contact, type Contacts } from "../../projections/contact-state.ts";
import { contacts } from "../../projections/contacts.ts";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import type { OpenedLog } from "./open-log.ts";
import { proveEvents } from "../log/sign-heads-and-prove-events.ts";
import { type Clock, isoTime } from "../platform/clock-ids-and-timers.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { EncryptedLog } from "./encrypted-log.ts";
import type { Query } from "eventstore-lite";
import type { StoredEvent } from "../log/export-formats/write-export-text.ts";
import { ciphertextOf } from "../../events/divide-and-encrypt-personal-data.ts";
import { canonicalAddress, toNetwork } from "../platform/ip-address.ts";
import { inChunks } from "../platform/work-in-time-slices.ts";
import { toBaseRef } from "./person-keys.ts";
import type { Reachlog } from "./log-context-types.ts";

/** Events and handles of one recipient, as the projections know them. */
export interface Known {
  /** Positions of all events about the recipient. */
  readonly positions: readonly number[];
  /** True if the recipient has this handle (in lower case) now. */
  readonly isHeld: (handle: string) => boolean;
  /** When it aborts, the search ends and throws the signal's reason. */
  readonly signal: AbortSignal;
}

/** Finds the keys that encrypt the events of one recipient, or may encrypt later ones. */
export async function findEncrypted(log: EncryptedLog, { positions, isHeld, signal }: Known) {
  /** Refs (names in ciphertexts) of the keys to delete. */
  const keys = new Set<string>();
  /** All ids and handles that the recipient ever had, without duplicates. */
  const names = new Map<string, Recipient>();
  for (const position of positions) {
    for await (const { stored, data } of openedEvents(log, { from: position, to: position })) {
      const { recipient } = data as { recipient?: Recipient };
      if (recipient !== undefined) names.set(JSON.stringify(recipient).toLowerCase(), recipient);
      const ciphertext = ciphertextOf(stored.data);
      // Keys of clicks are not named with the recipient's other keys in the erasure's event, which would say for ever
      // whose clicks they were.
      if (ciphertext !== undefined && !UNLINKABLE.has(stored.type)) keys.add(log.keyring.refOf(ciphertext));
    }
  }
  const ids = distinct([...names.values()].map(({ id }) => id)).map((id) => ({ id }));
  // A handle that another recipient has now, or took over when this one left it, is not part of this erasure.
  const handles = distinct([...names.values()].map(({ username }) => username?.toLowerCase()))
    .filter(isHeld)
    .map((username) => ({ username }));
  const [known] = ids;
  // Keys that do not encrypt the recipient's own events also belong to the erasure: those of other data about the
  // recipient, such as how far a source was read, and those that later data would use.
  const later = [...ids, ...handles.map((handle) => ({ ...known, ...handle }))];
  const refs = later.flatMap((name) => log.keyring.refsOf(name));
  for (const ref of refs) keys.add(ref);
  /** Ids of the recipient, and the handles that they have now. */
  const held = [...ids, ...handles];
  /** Names in `held` that distinguish this recipient from all others: the ids or, if no id is known, the handles. */
  const own = ids.length > 0 ? ids : handles;
  /** Refs of keys that encrypted other recipients' data under one of these handles; the erasure keeps them. */
  const spared = await findSpared(log, new Set(refs.map(toBaseRef)), keys, signal);
  return { keys, names: [...names.values()], held, own, events: positions.length, spared };
}

/**
 * Finds keys that encrypted data of other recipients, who had one of these handles before. Returns the refs (names) of
 * the keys.
 */
async function findSpared(
  log: EncryptedLog,
  bases: ReadonlySet<string>,
  keys: ReadonlySet<string>,
  signal: AbortSignal,
) {
  const spared = new Set<string>();
  for await (const { data } of log.readStored({ types: contacts.types })) {
    signal.throwIfAborted();
    const ciphertext = ciphertextOf(data);
    const ref = ciphertext === undefined ? "" : log.keyring.refOf(ciphertext);
    if (bases.has(toBaseRef(ref)) && !keys.has(ref)) spared.add(ref);
  }
  return [...spared];
}

/**
 * Types of events with keys that do not lead to the recipient; an erasure finds these keys by the codes of the
 * recipient's links.
 */
const UNLINKABLE: ReadonlySet<string> = new Set<EventType>([
  "PersonalLinkClicked",
  "ConversionRecorded",
  "ConversionReversed",
]);

function distinct(values: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(values)].filter((value) => value !== undefined);
}

/**
 * Finds the keys of days on which an answer to a caller, such as that of a dry run, contains one of these names. All
 * answers of such a day are erased: a repeated request is then refused, so nothing is done twice.
 */
async function findAnswers(log: EncryptedLog, names: readonly Recipient[], signal: AbortSignal) {
  const members = names.flatMap(({ id, username }) => [id, username]).filter((name) => name !== undefined);
  const wanted = [...new Set(members.map((name) => JSON.stringify(name.toLowerCase())))];
  const keys = new Set<string>();
  for await (const { stored, data } of openedEvents(log, { types: ["RequestAnswered"] })) {
    signal.throwIfAborted();
    const ciphertext = ciphertextOf(stored.data);
    if (ciphertext === undefined || keys.has(log.keyring.refOf(ciphertext))) continue;
    const { body } = data as { body: string };
    const text = body.toLowerCase();
    if (wanted.some((name) => text.includes(name))) keys.add(log.keyring.refOf(ciphertext));
  }
  return [...keys];
}

/** Types of events with data that is encrypted with the key of a client address. */
const TYPES: readonly EventType[] = ["LinkClicked", "AuthenticationsFailed"];

/**
 * Finds the clicks and wrong tokens of a client address by decrypting all of them. There is no durable index: with one,
 * an erased click could be linked to its address by trying out addresses.
 */
export async function findClicks(log: EncryptedLog, address: string, { signal, onProgress }: ForgetAddressOptions) {
  const wanted = new Set([canonicalAddress(address), toNetwork(address)]);
  const keys = new Set<string>();
  let events = 0;
  for await (const { stored, data } of openedEvents(log, { types: TYPES })) {
    signal.throwIfAborted();
    onProgress?.(stored.position);
    const { ip, address: caller } = data as { ip?: string; address?: string };
    const recorded = ip ?? caller;
    if (recorded === undefined || !wanted.has(canonicalAddress(recorded))) continue;
    events++;
    const ciphertext = ciphertextOf(stored.data);
    if (ciphertext !== undefined) keys.add(log.keyring.refOf(ciphertext));
  }
  return { keys, events };
}

/**
 * Number of events that are decrypted in one turn of the event loop (two milliseconds), and whose keys are fetched
 * together.
 */
const CHUNK_EVENTS = 128;

/**
 * Yields each event in its stored form, and its decrypted data. If the key was deleted, the data is that of an erased
 * event.
 */
export async function* openedEvents(
  log: EncryptedLog,
  query: Query,
): AsyncGenerator<{ readonly stored: StoredEvent; readonly data: unknown }, void, void> {
  for await (const chunk of inChunks(log.readStored(query), CHUNK_EVENTS)) {
    const opened = await log.open(chunk);
    for (const [at, stored] of chunk.entries()) yield { stored, data: opened[at]?.data };
  }
}

export interface ForgetOptions {
  /** Grounds for the erasure, and who asked for it. */
  readonly reason?: ErasureReason;
  readonly metadata: EventMetadata;
  /** When it aborts, the search for data to erase ends and throws the signal's reason; nothing is erased. */
  readonly signal: AbortSignal;
}

interface ForgetAddressOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: ((position: number) => void) | undefined;
}

/** Result of an erasure: the numbers of events and keys that are erased, and the events that record it. */
export type Forgotten = Awaited<ReturnType<typeof erase>>;

/**
 * Erases one recipient; undefined if `find` returns none. Resolves once the projections hold nothing of them any more.
 * Throws what the store's append throws.
 */
export async function forgetPerson(
  context: Reachlog,
  find: (contacts: Contacts) => Contact | undefined,
  { metadata, signal, reason = {} }: ForgetOptions,
): Promise<Forgotten | undefined> {
  const { projector, encryptedLog: log, hashesOf } = context;
  await projector.until((await log.head()).position);
  const contact = find(projector.state("contacts"));
  if (contact === undefined) return undefined;
  // Reads the handles when it is called, after all events of the recipient were read, because the log grows meanwhile.
  const isHeld = (handle: string): boolean => {
    const contacts = projector.state("contacts");
    return isHeldBy(contacts, handle, find(contacts));
  };
  const person = await findEncrypted(log, { positions: [...positionsAbout(contact)], isHeld, signal });
  const answers = await findAnswers(log, person.names, signal);
  const codes = find(projector.state("contacts"))?.personal_links ?? [];
  const links = codes.flatMap((code) => log.keyring.refsOf({ id: personalLinkOwner(code).id }));
  // An imported suppression may name its recipient only by a hash. Its text is then encrypted with a key stored under
  // that hash, so these keys are found by the hashes of the recipient's names.
  const listed = person.held.flatMap(hashesOf).flatMap((hash) => log.keyring.refsOf({ id: hash }));
  const texts = (await log.keyring.keys.getAll(listed)).keys();
  const keys = new Set([...person.keys, ...answers, ...links, ...texts]);
  const hashes = person.own.flatMap((name) => hashesOf(name));
  const data = { hashes, keys: [...keys], spared: [...person.spared], ...reason };
  return erase(context, person.events, data, metadata);
}

/** Erases the clicks of an IP address, and the records of its wrong tokens; undefined if there are none. */
export async function forgetAddress(
  context: Reachlog,
  address: string,
  { metadata, signal, reason = {}, onProgress }: ForgetOptions & ForgetAddressOptions,
): Promise<Forgotten | undefined> {
  const { events, keys } = await findClicks(context.encryptedLog, address, { signal, onProgress });
  if (events === 0) return undefined;
  const data = { hashes: [], keys: [...keys], spared: [], ...reason };
  return erase(context, events, data, metadata);
}

/**
 * Erases data: appends the events that record it, then deletes the keys, as the next start does after a crash in
 * between. Returns `id` and `position` of the first event; more than {@link KEYS_PER_EVENT_MAX} keys take several.
 */
async function erase(
  context: Reachlog,
  events: number,
  { hashes, keys, spared = [], ...reason }: Omit<DataOf<"PersonForgotten">, "scope">,
  metadata: EventMetadata,
) {
  const { projector, encryptedLog } = context;
  const { keyring } = encryptedLog;
  const newEvents: NewEvent[] = [];
  const others = spared.length === 0 ? {} : { spared };
  for (let at = 0; at === 0 || at < keys.length; at += KEYS_PER_EVENT_MAX) {
    const data = {
      hashes: at === 0 ? hashes : [],
      keys: keys.slice(at, at + KEYS_PER_EVENT_MAX),
      ...others,
      ...reason,
    };
    newEvents.push({ type: "PersonForgotten", data });
  }
  const { first, last, ids } = await context.eventLog.append(STREAMS.outreach, newEvents, metadata);
  // The projector deletes these keys too, when it reads the events. Whichever deletes them first also replaces the key
  // that encrypts snapshots.
  if ((await keyring.destroy(keys, spared)) > 0) await keyring.replaceStateKey();
  await projector.until(last);
  return { events, keys: keys.length, id: ids[0]!, position: first, lastPosition: last };
}

/**
 * Makes the certificate of an erasure: what was erased, why, and the proof of each event that records it. Throws a
 * ServiceError (invalid) if the log contradicts its last checkpoint.
 */
export async function certifyErasure(
  log: OpenedLog,
  { id, position, lastPosition, events, keys }: Forgotten,
  { ground, requested_by }: ErasureReason,
  clock: Clock,
): Promise<object> {
  const positions = Array.from({ length: lastPosition - position + 1 }, (_, at) => position + at);
  const proved = await proveEvents(log, log.checkpoints, clock, positions);
  if ("loss" in proved) throw new ServiceError("invalid", proved.loss);
  const statement = `The keys of ${events} events were deleted. Their personal data can no longer be read.`;
  const said = { ground: ground ?? null, requested_by: requested_by ?? null, certified_at: isoTime(clock()) };
  return { statement, events, keys, ...said, event: { id, position }, proofs: proved.proofs };
}
