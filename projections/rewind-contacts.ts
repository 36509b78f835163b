import { countPeopleAt, type Contact, type Contacts } from "./contacts.ts";

/** Entries between two steps: some tenths of a millisecond. */
const STEP_ENTRIES = 512;

type Entry = readonly [key: string, contact: Contact];

/** True if the recipients of a position can be put back from those of now. */
export function canRewindContacts({ rewinds_to }: Contacts, position: number): boolean {
  return position >= rewinds_to;
}

/**
 * The recipients as they were after the event at `position`, from those of now, step by step: a fold of the log up to there
 * gives the same. Events may be folded into `now` between two steps. Undefined: changes of after the position are dropped.
 */
export function* rewindContacts(now: Contacts, position: number): Generator<void, Contacts | undefined, void> {
  if (!canRewindContacts(now, position)) return undefined;
  const past = yield* putBackAll(now, position);
  // Events of meanwhile may have dropped more.
  return canRewindContacts(now, position) ? past : undefined;
}

function* putBackAll(now: Contacts, position: number): Generator<void, Contacts, void> {
  const past = rewindRest(now, position);
  let looked = 0;
  for (const [hash, at] of now.hashes) {
    if (++looked % STEP_ENTRIES === 0) yield;
    if (at <= position) past.hashes.set(hash, at);
  }
  // One copy a step, each a millisecond or two. The people last: what leads to one who is new by then is removed again.
  past.ids = new Map(now.ids);
  yield;
  past.links = new Map(now.links);
  yield;
  past.handles = new Map(now.handles);
  yield;
  // An entry that is absorbed from now on stays in its place.
  const entries = new Map(now.people);
  yield;
  const absorbed: Entry[] = [];
  for (const contact of entries.values()) {
    if (++looked % STEP_ENTRIES === 0) yield;
    for (const [key, other, then] of absorbedBy(contact, position)) {
      // Absorbed since the copy, it is among the entries.
      if (entries.get(key) === other) continue;
      unlink(past, key, other, then);
      if (then !== undefined) absorbed.push([key, then]);
    }
  }
  absorbed.sort(([, one], [, other]) => metAt(other) - metAt(one));
  const renamed = [...absorbed];
  for (const [key, contact] of entries) {
    if (++looked % STEP_ENTRIES === 0) yield;
    const entry = entryAt(contact, position);
    if (isRenamed(contact, position)) {
      unlink(past, key, contact, entry);
      if (entry !== undefined) renamed.push([key, entry]);
    }
    if (entry === undefined) continue;
    while (absorbed.length > 0 && metAt(absorbed.at(-1)![1]) < metAt(entry)) place(past, absorbed.pop()!);
    place(past, [key, entry]);
  }
  while (absorbed.length > 0) place(past, absorbed.pop()!);
  for (const [key, { username }] of renamed) {
    if (++looked % STEP_ENTRIES === 0) yield;
    if (username !== undefined) past.handles.set(username.toLowerCase(), key);
  }
  return past;
}

/** All but the hashes, the people, what is counted of them and what leads to them. */
function rewindRest(now: Contacts, position: number): Contacts {
  const isAt = ({ at }: { readonly at: number }): boolean => at <= position;
  const later = now.replaced.filter((one) => !isAt(one));
  const former = new Map(now.former);
  for (const { former: [handle, key] = [] } of later.toReversed()) {
    if (handle === undefined) continue;
    if (key == null) former.delete(handle);
    else former.set(handle, key);
  }
  return {
    people: new Map(),
    ids: new Map(),
    handles: new Map(),
    former,
    fields: new Map(),
    held: 0,
    hashes: new Map(),
    links: new Map(),
    merged: now.merged.filter(({ until }) => until <= position),
    taken: upTo(now.taken, position),
    refused: [...(later.find(({ refused }) => refused !== undefined)?.refused ?? now.refused)],
    replaced: now.replaced.filter(isAt),
    changed: changedUpTo(now, position),
    rewinds_to: now.rewinds_to,
  };
}

/** Blocks that are full stay as they are; the one in which the position is was open then. */
function changedUpTo({ changed: { full, open } }: Contacts, position: number): Contacts["changed"] {
  const before = [...full].filter(([, { at }]) => at.at(-1)! <= position);
  const crossed = full.values().find(({ at }) => at.at(-1)! > position) ?? open;
  const at = upTo(crossed.at, position);
  return { full: new Map(before), open: { at, keys: crossed.keys.slice(0, at.length) } };
}

/** Those that this one has absorbed since, now and as they were: they had no id, and so had absorbed none themselves. */
function* absorbedBy({ replaced = [] }: Contact, position: number) {
  for (const { at, absorbed } of replaced) {
    if (at <= position || absorbed === undefined) continue;
    const [key, contact] = absorbed;
    yield [key, contact, entryAt(contact, position)] as const;
  }
}

/** What a list reads of the people. */
export interface People extends Iterable<Entry> {
  readonly size: number;
  get(key: string): Contact | undefined;
}

/**
 * The people of a position for a list, which needs none of their positions: nothing is copied that has not changed. `get`
 * finds those that were listed.
 */
export function peopleAt(now: () => Contacts, position: number): People {
  let listed: Contacts | undefined;
  const absorbed = new Map<string, Contact>();
  function* all(): Generator<Entry, void, void> {
    listed = now();
    absorbed.clear();
    const entries = new Map(listed.people);
    for (const [key, contact] of entries) {
      for (const [otherKey, other, then] of absorbedBy(contact, position)) {
        if (then === undefined || entries.get(otherKey) === other) continue;
        absorbed.set(otherKey, then);
        yield [otherKey, then];
      }
      const entry = putBack(contact, position);
      if (entry !== undefined) yield [key, entry];
    }
  }
  return {
    [Symbol.iterator]: all,
    get size() {
      return countPeopleAt(now(), position);
    },
    get(key) {
      const contacts = now();
      const contact = contacts.people.get(key);
      const entry = contact && putBack(contact, position);
      // After an erasure the state is another one, and an entry of before may be of the person erased.
      return entry ?? (contacts === listed ? absorbed.get(key) : undefined);
    },
  };
}

/** Undefined: there was no such entry yet. */
function entryAt(contact: Contact, position: number): Contact | undefined {
  const before = putBack(contact, position);
  if (before === undefined) return undefined;
  const entry = { ...before, positions: upTo(before.positions, position) };
  const members: Record<string, unknown> = entry;
  const replaced = before.replaced?.filter(({ at }) => at <= position) ?? [];
  if (before.replaced !== undefined) members["replaced"] = replaced.length > 0 ? replaced : undefined;
  const reads = upTo(before.reads ?? [], position);
  if (before.reads !== undefined) members["reads"] = reads.length > 0 ? reads : undefined;
  return entry;
}

/**
 * The entry as it was, but for its lists of positions, which go on; itself where nothing was replaced since. Undefined:
 * there was none yet. A member that was absent is undefined: to delete it would make the object slow.
 */
function putBack(contact: Contact, position: number): Contact | undefined {
  const { replaced = [] } = contact;
  let entry = contact;
  if ((replaced.at(-1)?.at ?? 0) > position) {
    const copy = { ...contact };
    const members: Record<string, unknown> = copy;
    entry = copy;
    for (let index = replaced.length - 1; index >= 0 && replaced[index]!.at > position; index--) {
      for (const [member, value] of Object.entries(replaced[index]!.was)) {
        members[member] = value === null && member !== "consent" ? undefined : value;
      }
    }
  }
  return metAt(entry) > position ? undefined : entry;
}

/** Position of the event that made the entry, by which entries are in their order. */
function metAt({ met, positions }: Contact): number {
  return met ?? positions[0] ?? Infinity;
}

function place(past: Contacts, [key, contact]: Entry): void {
  const { people, fields } = past;
  people.set(key, contact);
  if (contact.held) past.held++;
  for (const field of Object.keys(contact.fields)) fields.set(field, (fields.get(field) ?? 0) + 1);
}

/** Whether other names lead to the entry now than at the position, or more links. */
function isRenamed(contact: Contact, position: number): boolean {
  if (metAt(contact) > position) return true;
  const { replaced = [] } = contact;
  return replaced.some(({ at, was }) => at > position && ("id" in was || "username" in was || "personal_links" in was));
}

/** Removes what leads to the entry since the position: `contact` is the entry now, `then` what it was. */
function unlink({ ids, handles, links }: Contacts, key: string, contact: Contact, then: Contact | undefined): void {
  for (const { username } of [contact, ...(contact.replaced ?? []).map(({ was }) => was)]) {
    const handle = username?.toLowerCase() ?? "";
    if (handles.get(handle) === key) handles.delete(handle);
  }
  if (contact.id !== undefined && then?.id === undefined) ids.delete(contact.id);
  for (const code of contact.personal_links) if (then?.personal_links.includes(code) !== true) links.delete(code);
}

/** A copy of those up to that one, of positions in ascending order. */
function upTo(positions: readonly number[], position: number): number[] {
  return positions.slice(0, positions.findLastIndex((one) => one <= position) + 1);
}
