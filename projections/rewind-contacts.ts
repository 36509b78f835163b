import type { Contact, Contacts } from "./contacts.ts";

/** Entries between two steps: some tenths of a millisecond. */
const STEP_ENTRIES = 512;

type Entry = readonly [key: string, contact: Contact];

/**
 * The recipients as they were after the event at `position`, from those of now, step by step: a fold of the log up to there
 * gives the same. Events may be folded into `now` between two steps.
 */
export function* rewindContacts(now: Contacts, position: number): Generator<void, Contacts, void> {
  const isAt = ({ at }: { readonly at: number }): boolean => at <= position;
  const later = now.replaced.filter((one) => !isAt(one));
  const former = new Map(now.former);
  for (const { former: [handle, key] = [] } of later.toReversed()) {
    if (handle === undefined) continue;
    if (key == null) former.delete(handle);
    else former.set(handle, key);
  }
  const past: Contacts = {
    people: new Map(),
    ids: new Map(),
    handles: new Map(),
    former,
    fields: new Map(),
    hashes: new Map([...now.hashes].filter(([, at]) => at <= position)),
    links: new Map(),
    merged: now.merged.filter(({ until }) => until <= position),
    taken: upTo(now.taken, position),
    refused: [...(later.find(({ refused }) => refused !== undefined)?.refused ?? now.refused)],
    replaced: now.replaced.filter(isAt),
  };
  // A copy: an entry that is absorbed from now on stays in its place.
  const entries = new Map(now.people);
  const absorbed: Entry[] = [];
  let looked = 0;
  for (const [, contact] of entries) {
    if (++looked % STEP_ENTRIES === 0) yield;
    listAbsorbed(contact, position, absorbed);
  }
  absorbed.sort(([, one], [, other]) => metAt(other) - metAt(one));
  for (const [key, contact] of entries) {
    if (++looked % STEP_ENTRIES === 0) yield;
    const entry = entryAt(contact, position);
    if (entry === undefined) continue;
    while (absorbed.length > 0 && metAt(absorbed.at(-1)![1]) < metAt(entry)) place(past, absorbed.pop()!);
    place(past, [key, entry]);
  }
  while (absorbed.length > 0) place(past, absorbed.pop()!);
  return past;
}

/** Adds the entries that this one has absorbed since: they had no id, and so had absorbed none themselves. */
function listAbsorbed({ replaced = [] }: Contact, position: number, found: Entry[]): void {
  for (const { at, absorbed } of replaced) {
    if (at <= position || absorbed === undefined) continue;
    const [key, contact] = absorbed;
    const entry = entryAt(contact, position);
    if (entry !== undefined) found.push([key, entry]);
  }
}

/** Undefined: there was no such entry yet. */
function entryAt(contact: Contact, position: number): Contact | undefined {
  const { replaced, ...entry }: Contact = contact;
  for (const { at, was } of replaced?.toReversed() ?? []) {
    if (at <= position) break;
    Object.assign(entry, was);
    for (const member of Object.keys(was) as (keyof typeof was)[]) {
      if (was[member] === null && member !== "consent") delete entry[member as "name"];
    }
  }
  if (metAt(entry) > position) return undefined;
  entry.positions = upTo(entry.positions, position);
  const reads = upTo(entry.reads ?? [], position);
  if (reads.length > 0) entry.reads = reads;
  else delete entry.reads;
  const before = replaced?.filter(({ at }) => at <= position) ?? [];
  return before.length === 0 ? entry : { ...entry, replaced: before };
}

/** Position of the event that made the entry, by which entries are in their order. */
function metAt({ met, positions }: Contact): number {
  return met ?? positions[0] ?? Infinity;
}

function place({ people, ids, handles, fields, links }: Contacts, [key, contact]: Entry): void {
  const { id, username, personal_links } = contact;
  people.set(key, contact);
  if (id !== undefined && id !== key) ids.set(id, key);
  if (username !== undefined) handles.set(username.toLowerCase(), key);
  for (const field of Object.keys(contact.fields)) fields.set(field, (fields.get(field) ?? 0) + 1);
  if (id !== undefined) for (const code of personal_links) links.set(code, id);
}

/** A copy of those up to that one, of positions in ascending order. */
function upTo(positions: readonly number[], position: number): number[] {
  return positions.slice(0, positions.findLastIndex((one) => one <= position) + 1);
}
