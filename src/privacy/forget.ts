import type { DataOf } from "../../events/catalog.ts";
import type { Recipient } from "../../events/outreach.ts";
import { KEYS_PER_EVENT_MAX } from "../../events/personal.ts";
import { personalLinkOwner } from "../../events/tracking.ts";
import { isHeldBy, type Contact, type Contacts } from "../../projections/contacts.ts";
import { STREAMS, type EventLog, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import type { Projector } from "../projector/projector.ts";
import type { EncryptedLog } from "./encrypted-log.ts";
import { findAnswers, findClicks, findEncrypted } from "./find-encrypted.ts";

export interface ForgetDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly encryptedLog: Pick<EncryptedLog, "head" | "readStored" | "open" | "keyring">;
  /** Keyed hashes by which the person is known as suppressed once nothing else is left of them. */
  readonly hashesOf: (who: Recipient) => readonly string[];
}

export interface ForgetOptions {
  readonly metadata: EventMetadata;
  /** Ends the search for what there is to erase: then nothing is erased, and its reason is thrown. */
  readonly signal: AbortSignal;
}

/** What can no longer be read. */
export interface Forgotten {
  readonly events: number;
  /** Keys that were deleted. */
  readonly keys: number;
}

export type FindPerson = (contacts: Contacts) => Contact | undefined;

/**
 * Erases one person. Undefined: `find` returns none. Resolves once the projections hold nothing of them any more. Throws
 * what the store's append throws.
 */
export async function forgetPerson(
  deps: ForgetDeps,
  find: FindPerson,
  { metadata, signal }: ForgetOptions,
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
  const person = await findEncrypted(log, { positions: [...contact.positions], isHeld, signal });
  const answers = await findAnswers(log, person.names, signal);
  const codes = find(projector.state("contacts"))?.personal_links ?? [];
  const links = codes.flatMap((code) => log.keyring.refsOf({ id: personalLinkOwner(code).id }));
  const keys = new Set([...person.keys, ...answers, ...links]);
  const hashes = person.own.flatMap((name) => hashesOf(name));
  await erase(deps, { hashes, keys: [...keys], spared: [...person.spared] }, metadata);
  return { events: person.events, keys: keys.size };
}

/** Erases the clicks of an IP address, and the records of its wrong tokens. Undefined: there are none. */
export async function forgetAddress(
  deps: ForgetDeps,
  address: string,
  { metadata, signal, onProgress }: ForgetOptions & { readonly onProgress?: (position: number) => void },
): Promise<Forgotten | undefined> {
  const { events, keys } = await findClicks(deps.encryptedLog, address, { signal, onProgress });
  if (events === 0) return undefined;
  await erase(deps, { hashes: [], keys: [...keys], spared: [] }, metadata);
  return { events, keys: keys.size };
}

/** Appends the events first: after a crash the next instance to open the log deletes the keys. */
async function erase(
  deps: ForgetDeps,
  { hashes, keys, spared }: Required<Omit<DataOf<"PersonForgotten">, "scope">>,
  metadata: EventMetadata,
): Promise<void> {
  const { projector, encryptedLog } = deps;
  const { keyring } = encryptedLog;
  const newEvents: NewEvent[] = [];
  const others = spared.length === 0 ? {} : { spared };
  for (let at = 0; at === 0 || at < keys.length; at += KEYS_PER_EVENT_MAX) {
    const data = { hashes: at === 0 ? hashes : [], keys: keys.slice(at, at + KEYS_PER_EVENT_MAX), ...others };
    newEvents.push({ type: "PersonForgotten", data });
  }
  const { last } = await deps.eventLog.append(STREAMS.outreach, newEvents, metadata);
  // The projector does the same as soon as it reads the events; the first of the two replaces the key of the states.
  if ((await keyring.destroy(keys, spared)) > 0) await keyring.replaceStateKey();
  await projector.until(last);
}
