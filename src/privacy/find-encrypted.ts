import type { NewEvent, Query, Recorded } from "eventstore-lite";
import type { EventType } from "../../events/catalog.ts";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import type { Recipient } from "../../events/outreach.ts";
import { contacts } from "../../projections/contacts.ts";
import { canonicalAddress, toNetwork } from "../platform/address.ts";
import { inChunks } from "../platform/time-slices.ts";
import type { EncryptedLog } from "./encrypted-log.ts";
import { toBaseRef } from "./person-keys.ts";

export interface ErasureTargets {
  /** Refs of the keys that their data is encrypted with. */
  readonly keys: ReadonlySet<string>;
  /** Events that are about them. */
  readonly events: number;
}

export interface Person extends ErasureTargets {
  /** Everything they were ever called. */
  readonly names: readonly Recipient[];
  /** Of these, the ones that distinguish them from others: their id, or where none is known the handles that they have. */
  readonly own: readonly Recipient[];
  /** Refs of keys that encrypted what was recorded of others by a handle of theirs. */
  readonly spared: readonly string[];
}

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

/** What the events of one person are encrypted with, and what could be of them later. */
export async function findEncrypted(log: Log, { positions, isHeld, signal }: Known): Promise<Person> {
  const keys = new Set<string>();
  const names = new Map<string, Recipient>();
  for (const position of positions) {
    for await (const { stored, data } of openedEvents(log, { from: position, to: position })) {
      const { recipient } = data as { recipient?: Recipient };
      if (recipient !== undefined) names.set(JSON.stringify(recipient).toLowerCase(), recipient);
      const ciphertext = ciphertextOf(stored.data);
      if (ciphertext !== undefined) keys.add(log.keyring.refOf(ciphertext));
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
  const own = ids.length > 0 ? ids : handles;
  const spared = await findSpared(log, new Set(refs.map(toBaseRef)), keys, signal);
  return { keys, names: [...names.values()], own, events: positions.length, spared };
}

/** What the log has encrypted under these handles with other keys: what it recorded of others who had them before. */
async function findSpared(
  log: Log,
  bases: ReadonlySet<string>,
  keys: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<readonly string[]> {
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
export async function findAnswers(
  log: Log,
  names: readonly Recipient[],
  signal: AbortSignal,
): Promise<readonly string[]> {
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

interface FindClicksOptions {
  /** Its reason is thrown once it aborts. */
  readonly signal: AbortSignal;
  readonly onProgress?: ((position: number) => void) | undefined;
}

/**
 * Finds the clicks and wrong tokens of an address by decrypting all. There is no durable index, since with one an erased
 * click could be linked to its address by trying out addresses.
 */
export async function findClicks(
  log: Log,
  address: string,
  { signal, onProgress }: FindClicksOptions,
): Promise<ErasureTargets> {
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
): AsyncGenerator<{ readonly stored: Recorded<NewEvent>; readonly data: unknown }, void, void> {
  for await (const chunk of inChunks(log.readStored(query), CHUNK_EVENTS)) {
    const opened = await log.open(chunk);
    for (const [at, stored] of chunk.entries()) yield { stored, data: opened[at]?.data };
  }
}
