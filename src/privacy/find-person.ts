import type { Recipient } from "../../events/outreach.ts";
import { ENCRYPTED_TYPES } from "../../events/catalog.ts";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import { contacts as contactsProjection, isHeldBy, type Contact, type Contacts } from "../../projections/contacts.ts";
import { baseOf } from "./person-keys.ts";
import type { EncryptedLog } from "./encrypted-log.ts";

/** What there is to delete of somebody. */
export interface Found {
  /** Refs of the keys that their data is sealed with. */
  readonly keys: ReadonlySet<string>;
  /** Events that tell of them. */
  readonly events: number;
  /** Of those, the ones from before sealing: they cannot be erased from the log. */
  readonly open: number;
}

export interface Person extends Found {
  /** Everything they were ever called. */
  readonly names: readonly Recipient[];
  /** Of these, the ones that tell them from others: their id, or where none is known the handles that they have. */
  readonly own: readonly Recipient[];
  /** Refs of keys that sealed what was told of others by a handle of theirs. */
  readonly spared: readonly string[];
}

/** Whom the events are about, and everybody as of the same position. */
export interface Known {
  readonly contacts: Contacts;
  readonly contact: Contact | undefined;
  /** Of all events that tell of them. */
  readonly positions: readonly number[];
}

/** What the events of one person are sealed with, and what could be of them later. */
export async function findEncrypted(log: EncryptedLog, { contacts, contact, positions }: Known): Promise<Person> {
  const keys = new Set<string>();
  const names = new Map<string, Recipient>();
  let open = 0;
  for (const position of positions) {
    for await (const event of log.readStored({ from: position, to: position })) {
      const { recipient } = log.open(event).data as { recipient?: Recipient };
      if (recipient !== undefined) names.set(JSON.stringify(recipient).toLowerCase(), recipient);
      const box = ciphertextOf(event.data);
      if (box !== undefined) keys.add(log.keyring.refOf(box));
      else if (ENCRYPTED_TYPES.some((type) => type === event.type)) open++;
    }
  }
  const ids = distinct([...names.values()].map(({ id }) => id)).map((id) => ({ id }));
  // A handle that somebody else has now, or had taken over when this person left it, is not theirs to erase.
  const handles = distinct([...names.values()].map(({ username }) => username?.toLowerCase()))
    .filter((handle) => isHeldBy(contacts, handle, contact))
    .map((username) => ({ username }));
  const [known] = ids;
  // Also what is sealed beside their own events, such as how far a source was read, or comes later.
  const later = [...ids, ...handles.map((handle) => ({ ...known, ...handle }))];
  const refs = later.flatMap((name) => log.keyring.refsOf(name));
  for (const ref of refs) keys.add(ref);
  const own = ids.length > 0 ? ids : handles;
  const spared = await findSpared(log, new Set(refs.map(baseOf)), keys);
  return { keys, names: [...names.values()], own, events: positions.length, open, spared };
}

/** What the log has sealed under these handles with other keys: what it told of others who had them before. */
async function findSpared(
  log: EncryptedLog,
  bases: ReadonlySet<string>,
  keys: ReadonlySet<string>,
): Promise<readonly string[]> {
  const spared = new Set<string>();
  for await (const { data } of log.readStored({ types: contactsProjection.types })) {
    const box = ciphertextOf(data);
    const ref = box === undefined ? "" : log.keyring.refOf(box);
    if (bases.has(baseOf(ref)) && !keys.has(ref)) spared.add(ref);
  }
  return [...spared];
}

function distinct(values: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(values)].filter((value) => value !== undefined);
}
