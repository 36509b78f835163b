import type { LogStore } from "../../../events/event-types-and-codec.ts";
import { findLetters, type DeadLetter } from "../../../src/delivery/find-and-decide-dead-letters.ts";
import { parseDispatchFilter, type FilterTexts } from "../../../src/delivery/dead-letter-filter.ts";
import { readDispatches, toDispatchJson } from "../../../src/delivery/undelivered-pages.ts";
import type { Projector } from "../../../src/projector/projector.ts";

/**
 * Lists the dead letters, or the other dispatches that match `texts`. Each has the fields that an operator sees, and
 * the fields on which a decision about it is based.
 */
export async function listLetters(
  store: LogStore,
  projector: Pick<Projector, "state" | "position">,
  texts: FilterTexts = {},
): Promise<readonly (DeadLetter & ReturnType<typeof toDispatchJson>)[]> {
  const at = { deliveries: projector.state("deliveries"), position: projector.position };
  const letters = await findLetters(store, at, parseDispatchFilter(texts, "UTC"));
  const dispatches = await readDispatches(store, letters);
  return letters.map((letter, index) => {
    const one = dispatches[index];
    if (one === undefined) throw new Error("a letter was not read");
    return { ...letter, ...toDispatchJson(one) };
  });
}
