import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { PERSONAL_PROJECTIONS, type ProjectionName } from "../../projections/all.ts";
import { createStates, type FoldedStates } from "../../projections/states.ts";
import { foldRange } from "./fold.ts";

/**
 * Folds the states that hold personal data anew from the log, which tells less since a key was deleted. Answers which
 * those are. So they equal what a rebuild gives, whatever they knew.
 */
export async function refold(
  store: EventStore<Event>,
  states: FoldedStates,
  to: number,
): Promise<readonly ProjectionName[]> {
  const anew = createStates(PERSONAL_PROJECTIONS);
  if (to > 0) await foldRange(store, anew, { from: 1, to });
  for (const name of PERSONAL_PROJECTIONS) states.replace(name, anew.get(name));
  return PERSONAL_PROJECTIONS;
}
