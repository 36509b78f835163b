import { contacts, type Contact, type Contacts } from "../../projections/contacts.ts";
import type { History, Reading } from "./history.ts";

/** What happened to one recipient, and who that is as of the end of the reading. */
export interface RecipientHistory extends History {
  readonly contact: Contact;
}

/**
 * What happened to the recipient that `find` answers: under every handle they had while they had it, also before their id
 * was known. Folds all recipients and messages, and reads no click. Undefined: there is no such recipient.
 */
export async function historyOfRecipient(
  { store, to, onProgress }: Reading,
  find: (contacts: Contacts) => Contact | undefined,
): Promise<RecipientHistory | undefined> {
  const state = contacts.initial();
  for await (const batch of store.readFolded({ types: contacts.types, to })) {
    for (const event of batch) contacts.evolve(state, event);
    onProgress(batch.at(-1)?.position ?? 0);
  }
  const contact = find(state);
  return contact === undefined ? undefined : { positions: contact.positions, dispatches: new Map(), contact };
}
