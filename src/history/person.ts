import type { Folded } from "../../events/catalog.ts";
import type { Recipient } from "../../events/outreach.ts";
import { contacts, findContact, type Contact, type Contacts } from "../../projections/contacts.ts";
import { inOrder } from "../log/events-at.ts";
import type { History, Reading } from "./history.ts";

/** What happened to one person, and who that is as of the end of the reading. */
export interface PersonHistory extends History {
  readonly person: Contact;
}

/**
 * What happened to the person that `find` answers: under every handle they had while they had it, also before their id
 * was known. Follows the projection over all people and messages, but reads no click. Undefined: there is no such person.
 */
export async function historyOfPerson(
  reading: Reading,
  find: (contacts: Contacts) => Contact | undefined,
): Promise<PersonHistory | undefined> {
  const { store, to, onProgress } = reading;
  const state = contacts.initial();
  const positions = new Map<Contact, number[]>();
  for await (const batch of store.readFolded({ types: contacts.types, to })) {
    for (const event of batch) follow(state, positions, event);
    onProgress(batch.at(-1)?.position ?? 0);
  }
  const person = find(state);
  if (person === undefined) return undefined;
  return { positions: inOrder(positions.get(person) ?? []), dispatches: new Map(), person };
}

/** Folds the event, and notes it for whom the projection takes it to be about. */
function follow(state: Contacts, positions: Map<Contact, number[]>, event: Folded): void {
  const who = "recipient" in event.data ? event.data.recipient : undefined;
  if (who === undefined) return;
  const namesake = keyOfHandle(state, who);
  const before = namesake === undefined ? undefined : state.people.get(namesake);
  contacts.evolve(state, event);
  const person = findContact(state, who);
  if (person === undefined) return;
  const own = positions.get(person) ?? [];
  positions.set(person, own);
  own.push(event.position);
  // Two entries turned out to be one person: the projection has dropped the other.
  if (before === undefined || namesake === undefined || state.people.has(namesake)) return;
  for (const position of positions.get(before) ?? []) own.push(position);
}

function keyOfHandle(state: Contacts, { username }: Recipient): string | undefined {
  return username === undefined ? undefined : state.handles.get(username.toLowerCase());
}
