import type { EventType, Recorded } from "../../events/catalog.ts";
import {
  PERSONAL_PROJECTIONS,
  PROJECTION_NAMES,
  projectionOf,
  type ProjectionName,
  type States,
} from "../../projections/all.ts";
import { createStateDecoder, encodePieces } from "../../projections/snapshot.ts";
import { inTimeSlices } from "../platform/time-slices.ts";
import { findDifferences } from "./differences.ts";

/** Characters of the JSON of a state that is shown as a whole: a few screens. */
const WHOLE_CHARACTERS_MAX = 2_000;

/** The projections that fold events of the type: no other state changes. */
export function listFolding(type: EventType): readonly ProjectionName[] {
  return PROJECTION_NAMES.filter((name) => projectionOf(name).types.includes(type));
}

/** What one event changed in the state of a projection. */
export type StateChange = Awaited<ReturnType<typeof findChange>>;

/** What the event changes in a state, which stays as it is: the fold is of a copy. Others have their turns meanwhile. */
export async function findChange<Name extends ProjectionName>(projection: Name, before: States[Name], event: Recorded) {
  const { state, characters } = await inTimeSlices(copy(before));
  const after = projectionOf(projection).evolve(state, event);
  const isShown = characters <= WHOLE_CHARACTERS_MAX && !PERSONAL.has(projection);
  return {
    projection,
    /** In the order of the state; the first DIFFERENCES_MAX of them. Empty: nothing changed. */
    differences: await findDifferences(before, after),
    /** Both states; undefined where they are large, or name recipients that the event is not about. */
    whole: isShown ? { before, after } : undefined,
  };
}

const PERSONAL: ReadonlySet<ProjectionName> = new Set(PERSONAL_PROJECTIONS);

/** A copy of the state, and how long its JSON is. */
function* copy(state: unknown): Generator<void, { readonly state: unknown; readonly characters: number }, void> {
  const decoder = createStateDecoder();
  let characters = 0;
  for (const line of encodePieces(state)) {
    characters += line.length;
    decoder.add(line);
    yield;
  }
  return { state: decoder.state(), characters };
}
