import { isTriedLast, type Contact } from "../../../projections/contacts.ts";
import { recipientOf } from "./list.ts";
import { LOOKUP_BATCH, type Candidate, type Source } from "./source.ts";

/** Whom an earlier run could not write to and may: the source they came from is not read for them a second time. */
export function againSource(): Source {
  return openContacts("again", (contact) => contact.again && !isTriedLast(contact));
}

/** Those of them whom the network refused. They come behind everybody else, whatever source they are in. */
export function lastSource(): Source {
  return { ...openContacts("last", isTriedLast), last: true };
}

function openContacts(name: string, isMeant: (contact: Contact) => boolean): Source {
  return {
    name,
    paid: false,
    async *candidates({ run }) {
      const people = [...run.projector.state("contacts").people.values()].filter(isMeant);
      for (let at = 0; at < people.length; at += LOOKUP_BATCH) {
        yield {
          candidates: people.slice(at, at + LOOKUP_BATCH).map((contact): Candidate => ({ who: recipientOf(contact) })),
        };
      }
    },
  };
}
