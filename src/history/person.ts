import { contacts, type Contact, type Contacts } from "../../projections/contacts.ts";
import type { History, Reading } from "./history.ts";

/** What happened to one person, and who that is as of the end of the reading. */
export interface PersonHistory extends History {
  readonly person: Contact;
}

/**
 * What happened to the person that `find` answers: under every handle they had while they had it, also before their id
 * was known. Folds all people and messages, and reads no click. Undefined: there is no such person.
 */
export async function historyOfPerson(
  { store, to, onProgress }: Reading,
  find: (contacts: Contacts) => Contact | undefined,
): Promise<PersonHistory | undefined> {
  const state = contacts.initial();
  for await (const batch of store.readFolded({ types: contacts.types, to })) {
    for (const event of batch) contacts.evolve(state, event);
    onProgress(batch.at(-1)?.position ?? 0);
  }
  const person = find(state);
  return person === undefined ? undefined : { positions: person.positions, dispatches: new Map(), person };
}
