import type { DataOf, EventType, LogStore } from "../../events/catalog.ts";
import type { Recipient } from "../../events/outreach.ts";
import { KEYS_PER_EVENT_MAX, type ErasureReason } from "../../events/personal.ts";
import { personalLinkOwner } from "../../events/tracking.ts";
import { isHeldBy, positionsAbout, type Contact, type Contacts, contacts } from "../../projections/contacts.ts";
import { STREAMS, type EventMetadata, type NewEvent, type PartDeps } from "../log/event-log.ts";
import type { CheckpointStore } from "../log/checkpoint.ts";
import { proveEvents } from "../log/signed-heads.ts";
import { type Clock, isoTime } from "../platform/clock.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { EncryptedLog } from "./encrypted-log.ts";
import type { Query } from "eventstore-lite";
import type { StoredEvent } from "../log/export-formats/format.ts";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import { canonicalAddress, toNetwork } from "../platform/ip-address.ts";
import { inChunks } from "../platform/time-slices.ts";
import { toBaseRef } from "./person-keys.ts";

/** What the projections know of the person. */
export interface Known {
  /** Of all events that are about them. */
  readonly positions: readonly number[];
  /** Whether this handle, in lower case, is theirs. */
  readonly isHeld: (handle: string) => boolean;
  /** Its reason is thrown once it aborts. */
  readonly signal: AbortSignal;
}

type Log = OpenableLog & Pick<EncryptedLog, "keyring">;

/**
 * What the events of one person are encrypted with, and what could be of them later. `keys`: refs of keys; `names`:
 * everything they were ever called; `held`: of these, their ids and the handles that they have; `own`: of these, the ones
 * that distinguish them from others, which is their id, or where none is known the handles that they have; `spared`: refs
 * of keys that encrypted what was recorded of others by a handle of theirs.
 */
export async function findEncrypted(log: Log, { positions, isHeld, signal }: Known) {
  const keys = new Set<string>();
  const names = new Map<string, Recipient>();
  for (const position of positions) {
    for await (const { stored, data } of openedEvents(log, { from: position, to: position })) {
      const { recipient } = data as { recipient?: Recipient };
      if (recipient !== undefined) names.set(JSON.stringify(recipient).toLowerCase(), recipient);
      const ciphertext = ciphertextOf(stored.data);
      // Named with the recipient's other keys, that of a click would say for ever whose click it was.
      if (ciphertext !== undefined && stored.type !== "PersonalLinkClicked") keys.add(log.keyring.refOf(ciphertext));
    }
  }
  const ids = distinct([...names.values()].map(({ id }) => id)).map((id) => ({ id }));
  // A handle that another person has now, or took over when this person left it, is not part of this erasure.
  const handles = distinct([...names.values()].map(({ username }) => username?.toLowerCase()))
    .filter(isHeld)
    .map((username) => ({ username }));
  const [known] = ids;
  // Also what is encrypted beside their own events, such as how far a source was read, or comes later.
  const later = [...ids, ...handles.map((handle) => ({ ...known, ...handle }))];
  const refs = later.flatMap((name) => log.keyring.refsOf(name));
  for (const ref of refs) keys.add(ref);
  const held = [...ids, ...handles];
  const own = ids.length > 0 ? ids : handles;
  const spared = await findSpared(log, new Set(refs.map(toBaseRef)), keys, signal);
  return { keys, names: [...names.values()], held, own, events: positions.length, spared };
}

/** What the log has encrypted under these handles with other keys: what it recorded of others who had them before. */
async function findSpared(log: Log, bases: ReadonlySet<string>, keys: ReadonlySet<string>, signal: AbortSignal) {
  const spared = new Set<string>();
  for await (const { data } of log.readStored({ types: contacts.types })) {
    signal.throwIfAborted();
    const ciphertext = ciphertextOf(data);
    const ref = ciphertext === undefined ? "" : log.keyring.refOf(ciphertext);
    if (bases.has(toBaseRef(ref)) && !keys.has(ref)) spared.add(ref);
  }
  return [...spared];
}

function distinct(values: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(values)].filter((value) => value !== undefined);
}

/**
 * Refs of the keys of those days on which callers were answered with any of these names, as a dry run does. All answers
 * of such a day go: a repeat of one of its requests is refused, and nothing is done twice.
 */
async function findAnswers(log: Log, names: readonly Recipient[], signal: AbortSignal) {
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

/** What is encrypted for addresses. */
const TYPES: readonly EventType[] = ["LinkClicked", "AuthenticationsFailed"];

/**
 * Finds the clicks and wrong tokens of an address by decrypting all. There is no durable index, since with one an erased
 * click could be linked to its address by trying out addresses.
 */
export async function findClicks(log: Log, address: string, { signal, onProgress }: ForgetAddressOptions) {
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

export type OpenableLog = Pick<EncryptedLog, "readStored" | "open">;

/** Events whose keys are fetched together, and that are decrypted in one turn: two milliseconds. */
const CHUNK_EVENTS = 128;

/** Events as they are stored, and their data as it was written, or as erased. */
export async function* openedEvents(
  log: OpenableLog,
  query: Query,
): AsyncGenerator<{ readonly stored: StoredEvent; readonly data: unknown }, void, void> {
  for await (const chunk of inChunks(log.readStored(query), CHUNK_EVENTS)) {
    const opened = await log.open(chunk);
    for (const [at, stored] of chunk.entries()) yield { stored, data: opened[at]?.data };
  }
}

export interface ForgetDeps extends Pick<PartDeps, "eventLog" | "projector"> {
  readonly encryptedLog: Pick<EncryptedLog, "head" | "readStored" | "open" | "keyring">;
  /** Keyed hashes by which the person is known as suppressed once nothing else is left of them. */
  readonly hashesOf: (who: Recipient) => readonly string[];
}

export interface ForgetOptions {
  /** Why, and who asked for it. */
  readonly reason?: ErasureReason;
  readonly metadata: EventMetadata;
  /** Ends the search for what there is to erase: then nothing is erased, and its reason is thrown. */
  readonly signal: AbortSignal;
}

interface ForgetAddressOptions extends Pick<ForgetOptions, "signal"> {
  readonly onProgress?: ((position: number) => void) | undefined;
}

/** What can no longer be read, and the events that record it. */
export type Forgotten = Awaited<ReturnType<typeof erase>>;

/**
 * Erases one person. Undefined: `find` returns none. Resolves once the projections hold nothing of them any more. Throws
 * what the store's append throws.
 */
export async function forgetPerson(
  deps: ForgetDeps,
  find: (contacts: Contacts) => Contact | undefined,
  { metadata, signal, reason = {} }: ForgetOptions,
): Promise<Forgotten | undefined> {
  const { projector, encryptedLog: log, hashesOf } = deps;
  await projector.until((await log.head()).position);
  const contact = find(projector.state("contacts"));
  if (contact === undefined) return undefined;
  // As it is when all of theirs was read: the log grows meanwhile.
  const isHeld = (handle: string): boolean => {
    const contacts = projector.state("contacts");
    return isHeldBy(contacts, handle, find(contacts));
  };
  const person = await findEncrypted(log, { positions: [...positionsAbout(contact)], isHeld, signal });
  const answers = await findAnswers(log, person.names, signal);
  const codes = find(projector.state("contacts"))?.personal_links ?? [];
  const links = codes.flatMap((code) => log.keyring.refsOf({ id: personalLinkOwner(code).id }));
  // What a list said of their hashes.
  const listed = person.held.flatMap(hashesOf).flatMap((hash) => log.keyring.refsOf({ id: hash }));
  const texts = (await log.keyring.keys.getAll(listed)).keys();
  const keys = new Set([...person.keys, ...answers, ...links, ...texts]);
  const hashes = person.own.flatMap((name) => hashesOf(name));
  const data = { hashes, keys: [...keys], spared: [...person.spared], ...reason };
  return erase(deps, person.events, data, metadata);
}

/** Erases the clicks of an IP address, and the records of its wrong tokens. Undefined: there are none. */
export async function forgetAddress(
  deps: ForgetDeps,
  address: string,
  { metadata, signal, reason = {}, onProgress }: ForgetOptions & ForgetAddressOptions,
): Promise<Forgotten | undefined> {
  const { events, keys } = await findClicks(deps.encryptedLog, address, { signal, onProgress });
  if (events === 0) return undefined;
  const data = { hashes: [], keys: [...keys], spared: [], ...reason };
  return erase(deps, events, data, metadata);
}

/**
 * Appends the events first: after a crash the next instance to open the log deletes the keys. `id`, `position`: of the first;
 * more than {@link KEYS_PER_EVENT_MAX} keys take several, next to each other.
 */
async function erase(
  deps: ForgetDeps,
  events: number,
  { hashes, keys, spared = [], ...reason }: Omit<DataOf<"PersonForgotten">, "scope">,
  metadata: EventMetadata,
) {
  const { projector, encryptedLog } = deps;
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
  const { first, last, ids } = await deps.eventLog.append(STREAMS.outreach, newEvents, metadata);
  // The projector does the same as soon as it reads the events; the first of the two replaces the key of the states.
  if ((await keyring.destroy(keys, spared)) > 0) await keyring.replaceStateKey();
  await projector.until(last);
  return { events, keys: keys.length, id: ids[0]!, position: first, lastPosition: last };
}

/**
 * Makes the certificate of an erasure: what was erased, why, and the proof of each event that records it. Throws a
 * ServiceError (invalid) if the log denies its last checkpoint.
 */
export async function certifyErasure(
  log: LogStore & { readonly checkpoints: CheckpointStore },
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
