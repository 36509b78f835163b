import type { Contact, Contacts } from "./contact-state.ts";

/** Number of changes in a block. Changes are copied, dropped and stored by whole blocks. */
const BLOCK_CHANGES = 64;

/**
 * Maximum number of changes kept for rewinding, 80 MB if they come from imports. That is two years of a hundred
 * messages a day, or five days if an import changes 50,000 rows every night.
 */
export const REPLACED_MAX = 4_000 * BLOCK_CHANGES;
const BLOCKS_MAX = REPLACED_MAX / BLOCK_CHANGES;

/** Number of blocks of contact changes that are dropped at once. Dropping them takes about a millisecond. */
const BLOCKS_DROPPED = BLOCKS_MAX / 100;

/** Event that is being folded, with the former values of the contacts that it may change. */
export interface Change {
  readonly position: number;
  readonly before: Map<Contact, Before>;
  absorbed?: readonly [key: string, entry: Contact];
}

/** Contact as it was before an event, and its key. */
interface Before {
  readonly key: string;
  readonly entry: Contact;
}

export function willChange({ before }: Change, key: string, contact: Contact): Contact {
  if (!before.has(contact)) before.set(contact, { key, entry: { ...contact } });
  return contact;
}

/**
 * Members of a contact that are compared before and after an event: all except `replaced`. The former value of each one
 * that changed is stored there.
 */
const MEMBERS = Object.keys({
  id: true,
  username: true,
  name: true,
  timezone: true,
  basis: true,
  consent: true,
  tracking: true,
  inbound: true,
  wrote_at: true,
  consents_for: true,
  campaign: true,
  campaigns: true,
  follows: true,
  own_links: true,
  personal_links: true,
  clicked: true,
  fields: true,
  listed: true,
  status: true,
  suppressed: true,
  held: true,
  held_at: true,
  received: true,
  received_id: true,
  replied: true,
  held_unread: true,
  message_id: true,
  seen_at: true,
  variant: true,
  attempted_at: true,
  again: true,
  skipped: true,
  refused_after: true,
  positions: true,
  reads: true,
  met: true,
} satisfies Record<Exclude<keyof Contact, "replaced">, true>) as readonly Exclude<keyof Contact, "replaced">[];

/** Stores the former values of what an event has replaced, and drops the oldest changes once there are too many. */
export function noteChanges(state: Contacts, change: Change): void {
  for (const [contact, before] of change.before) noteReplaced(state, contact, before, change);
  if (state.changed.full.size > BLOCKS_MAX) dropReplacedUpTo(state, endOfOldest(state, BLOCKS_DROPPED));
}

function noteReplaced({ changed }: Contacts, contact: Contact, { key, entry }: Before, change: Change): void {
  const { position, absorbed } = change;
  let was: Record<string, unknown> | undefined;
  for (const member of MEMBERS) {
    const old = entry[member];
    if (old !== contact[member] && !isSame(old, contact[member])) (was ??= {})[member] = old ?? null;
  }
  if (was === undefined) return;
  const isInto = absorbed !== undefined && "positions" in was;
  (contact.replaced ??= []).push(isInto ? { at: position, was, absorbed } : { at: position, was });
  const { open } = changed;
  open.at.push(position);
  open.keys.push(key);
  if (open.at.length < BLOCK_CHANGES) return;
  changed.full.set(open.at[0]!, open);
  changed.open = { at: [], keys: [] };
}

/** True if two values are equal as JSON, so neither may contain a Map. */
function isSame(one: unknown, other: unknown): boolean {
  return typeof one === "object" && JSON.stringify(one) === JSON.stringify(other);
}

export function replaceRefused(state: Contacts, refused: string[], { position }: Change): void {
  if (state.refused.length + refused.length > 0) state.replaced.push({ at: position, refused: state.refused });
  state.refused = refused;
}

export function replaceFormer(state: Contacts, handle: string, key: string | undefined, { position }: Change): void {
  state.replaced.push({ at: position, former: [handle, state.former.get(handle) ?? null] });
  if (key === undefined) state.former.delete(handle);
  else state.former.set(handle, key);
}

/** Returns the position of the last change in the oldest blocks; `blocks` is their number. */
function endOfOldest({ changed: { full } }: Contacts, blocks: number): number {
  const [, last] = [...Iterator.from(full).take(blocks)].at(-1)!;
  return last.at.at(-1)!;
}

/**
 * Drops the former values that events up to a position have replaced. If a contact has absorbed another entry, that
 * entry's former values are dropped together with the record of the absorption.
 */
export function dropReplacedUpTo(state: Contacts, position: number): void {
  const { full, open } = state.changed;
  state.rewinds_to = Math.max(state.rewinds_to, position);
  for (const [first, { at, keys }] of full) {
    if (first > position) break;
    for (const key of keys) dropReplaced(state.people.get(key), position);
    if (at.at(-1)! <= position) full.delete(first);
  }
  for (const key of open.keys) dropReplaced(state.people.get(key), position);
  const kept = state.replaced.findIndex(({ at }) => at > position);
  state.replaced.splice(0, kept === -1 ? state.replaced.length : kept);
}

function dropReplaced(contact: Contact | undefined, position: number): void {
  const { replaced } = contact ?? {};
  if (contact === undefined || replaced === undefined || replaced[0]!.at > position) return;
  const kept = replaced.filter(({ at }) => at > position);
  if (kept.length > 0) contact.replaced = kept;
  else delete contact.replaced;
}
