import type { Contact, Contacts } from "../../../projections/contacts.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { LOOKUP_BATCH, type Candidate, type Source } from "./source.ts";

/** The imported recipients, in the order of their first import. */
export function listSource(contacts: () => Contacts): Source {
  return {
    name: "list",
    paid: false,
    async *candidates() {
      // A copy: an import during the run changes the Map under the loop.
      const listed = [...contacts().people.values()].filter((contact) => contact.listed);
      for (let at = 0; at < listed.length; at += LOOKUP_BATCH) {
        yield {
          candidates: listed.slice(at, at + LOOKUP_BATCH).map((contact): Candidate => ({ who: recipientOf(contact) })),
        };
      }
    },
  };
}

/** What is known of who a person is. */
export function recipientOf({ id, username }: Contact): Recipient {
  return { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
}
