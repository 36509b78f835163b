import { countPeopleAt, type Contact, type Contacts } from "./contact-state.ts";

/** Number of contacts handled between two steps of a rewind: some tenths of a millisecond. */
const STEP_ENTRIES = 512;

type Entry = readonly [key: string, contact: Contact];

const NOTHING: readonly never[] = [];

/** True if the recipients of a position can be restored from the present ones. */
export function canRewindContacts({ rewinds_to }: Contacts, position: number): boolean {
  return position >= rewinds_to;
}

/**
 * Restores step by step the recipients as they were after the event at `position`, as a fold of the log would give
 * them. Events may be folded into `now` between two steps. Undefined if changes made after the position were dropped.
 */
export function* rewindContacts(now: Contacts, position: number): Generator<void, Contacts | undefined, void> {
  if (!canRewindContacts(now, position)) return undefined;
  const past = yield* putBackAll(now, position);
  // Events that were folded into `now` during the rewind may have dropped changes that the rewind needs.
  return canRewindContacts(now, position) ? past : undefined;
}

function* putBackAll(now: Contacts, position: number): Generator<void, Contacts, void> {
  const past = rewindRest(now, position);
  let looked = 0;
  for (const [hash, at] of now.hashes) {
    if (++looked % STEP_ENTRIES === 0) yield;
    if (at <= position) past.hashes.set(hash, at);
  }
  // Copies one map in each step, which takes a millisecond or two. `people` is copied last: a person added between two
  // steps is then surely in that copy, and the two loops over it remove that person from all maps.
  past.ids = new Map(now.ids);
  yield;
  past.links = new Map(now.links);
  yield;
  past.handles = new Map(now.handles);
  yield;
  // If a later event merges an entry into another, this copy keeps the entry.
  const entries = new Map(now.people);
  yield;
  const absorbed: Entry[] = [];
  for (const contact of entries.values()) {
    if (++looked % STEP_ENTRIES === 0) yield;
    for (const [key, other, then] of absorbedBy(contact, position)) {
      // If the contact `other` was merged into another contact only after the copy `entries` was made, `entries` still
      // contains it. The next loop, over `entries`, then rewinds it.
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

/**
 * Rewinds some parts of the state, and leaves the others empty. {@link putBackAll} fills the others: the people, the
 * maps that lead to people, the counts of people, and the hashes.
 */
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

/**
 * Returns the changes up to a position. Keeps the full blocks that end before the position, and cuts the block that
 * contains the position. The cut block becomes the open one.
 */
function changedUpTo({ changed: { full, open } }: Contacts, position: number): Contacts["changed"] {
  const before = [...full].filter(([, { at }]) => at.at(-1)! <= position);
  const crossed = full.values().find(({ at }) => at.at(-1)! > position) ?? open;
  const at = upTo(crossed.at, position);
  return { full: new Map(before), open: { at, keys: crossed.keys.slice(0, at.length) } };
}

/**
 * Yields each contact that this contact has absorbed after the position: its key, its state now, and its state at the
 * position. An absorbed contact has no network id, so it has absorbed none itself.
 */
function* absorbedBy({ replaced = [] }: Contact, position: number) {
  for (const { at, absorbed } of replaced) {
    if (at <= position || absorbed === undefined) continue;
    const [key, contact] = absorbed;
    yield [key, contact, entryAt(contact, position)] as const;
  }
}

/**
 * The contacts of one position of the log, with the methods that the list of recipients uses: iterate over all, count
 * them, and find one by its key.
 */
export interface People extends Iterable<Entry> {
  readonly size: number;
  get(key: string): Contact | undefined;
}

/**
 * Returns the people known at a position, for a list. A list does not need the positions of their events, so only
 * changed contacts are copied. `get` finds the listed contacts.
 */
export function peopleAt(now: () => Contacts, position: number): People {
  let listed: Contacts | undefined;
  const absorbed = new Map<string, Contact>();
  function* all(): Generator<Entry, void, void> {
    listed = now();
    absorbed.clear();
    const entries = new Map(listed.people);
    for (const [key, contact] of entries) {
      const changes = contact.replaced === undefined ? NOTHING : absorbedBy(contact, position);
      for (const [otherKey, other, then] of changes) {
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
      // An erasure replaces the whole state of the contacts. If that has happened since the list was made, the contacts
      // noted in `absorbed` are no longer returned, because one of them may be the erased recipient.
      return entry ?? (contacts === listed ? absorbed.get(key) : undefined);
    },
  };
}

/**
 * Returns the contact that had this network id at a position; undefined if none had. It can only be the contact that
 * has the id now: contacts never lose an id, and only contacts without one are absorbed.
 */
export function contactWithIdAt({ people, ids }: Contacts, id: string, position: number): Contact | undefined {
  const contact = people.get(id) ?? people.get(ids.get(id) ?? "");
  const entry = contact && entryAt(contact, position);
  return entry?.id === id ? entry : undefined;
}

/** Returns a contact as it was after the event at a position; undefined if it did not exist yet. */
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
 * Returns the contact with its values at a position; undefined if it was created later. Its lists of positions are not
 * cut. Sets members that were absent to undefined, because deleting them would make the object slow.
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

/** Returns the position of the event that created the contact; contacts are in this order. */
function metAt({ met, positions }: Contact): number {
  return met ?? positions[0] ?? Infinity;
}

function place(past: Contacts, [key, contact]: Entry): void {
  const { people, fields } = past;
  people.set(key, contact);
  if (contact.held) past.held++;
  for (const field of Object.keys(contact.fields)) fields.set(field, (fields.get(field) ?? 0) + 1);
}

/**
 * True if the contact's id, handle or personal links changed after the position, or if the contact was created after
 * it.
 */
function isRenamed(contact: Contact, position: number): boolean {
  if (metAt(contact) > position) return true;
  const { replaced = [] } = contact;
  return replaced.some(({ at, was }) => at > position && ("id" in was || "username" in was || "personal_links" in was));
}

/**
 * Removes all handles of a contact from the indexes, and the id and personal links that the contact has now but did not
 * have at the position. `contact` is its present state, `then` the earlier one; the caller adds the earlier handle
 * again.
 */
function unlink({ ids, handles, links }: Contacts, key: string, contact: Contact, then: Contact | undefined): void {
  for (const { username } of [contact, ...(contact.replaced ?? []).map(({ was }) => was)]) {
    const handle = username?.toLowerCase() ?? "";
    if (handles.get(handle) === key) handles.delete(handle);
  }
  if (contact.id !== undefined && then?.id === undefined) ids.delete(contact.id);
  for (const code of contact.personal_links) if (then?.personal_links.includes(code) !== true) links.delete(code);
}

/** Returns a copy of the positions up to `position`; they are in ascending order. */
export function upTo(positions: readonly number[], position: number): number[] {
  return positions.slice(0, positions.findLastIndex((one) => one <= position) + 1);
}
