import { recipientOf } from "./list.ts";
import { LOOKUP_BATCH, type Candidate, type Source } from "./source.ts";

/** Whom an earlier run could not write to and may: the source they came from is not read for them a second time. */
export function againSource(): Source {
  return {
    name: "again",
    paid: false,
    async *candidates({ run }) {
      const people = [...run.projector.state("contacts").people.values()].filter(({ again }) => again);
      for (let at = 0; at < people.length; at += LOOKUP_BATCH) {
        yield {
          candidates: people.slice(at, at + LOOKUP_BATCH).map((contact): Candidate => ({ who: recipientOf(contact) })),
        };
      }
    },
  };
}
