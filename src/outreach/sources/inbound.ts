import { openOlderMessages } from "../inbox.ts";
import { recipientOf } from "./list.ts";
import { LOOKUP_BATCH, type Candidate, type Source } from "./source.ts";

/** Who wrote to us before we did to them: first those known, in the order in which they were read, then older ones. */
export function inboundSource(): Source {
  return {
    name: "inbound",
    paid: true,
    async *candidates({ run, retry, wanted }) {
      const given = new Set<string>();
      const older = openOlderMessages(run, retry);
      for (let isLeft = true; !run.signal.aborted;) {
        const people = [...run.projector.state("contacts").people.values()]
          .filter(({ inbound, id }) => inbound && id !== undefined && !given.has(id))
          .slice(0, LOOKUP_BATCH);
        for (const { id = "" } of people) given.add(id);
        if (people.length > 0)
          yield { candidates: people.map((contact): Candidate => ({ who: recipientOf(contact) })) };
        else if (!isLeft) return;
        else isLeft = await older.readPage(wanted());
      }
    },
  };
}
