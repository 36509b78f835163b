import type { EventType, Recorded } from "../../events/catalog.ts";
import {
  PERSONAL_PROJECTIONS,
  PROJECTION_NAMES,
  projectionOf,
  rewindOf,
  type ProjectionName,
  type Rewind,
  type States,
} from "../../projections/all.ts";
import type { Contact, Contacts } from "../../projections/contacts.ts";
import { createStateDecoder, encodePieces } from "../../projections/snapshot.ts";
import { inTimeSlices } from "../platform/time-slices.ts";
import { findDifferences, type Difference } from "./differences.ts";

/** Maximum length of the JSON of a state that is shown as a whole: a few screens. */
const WHOLE_CHARACTERS_MAX = 2_000;

/** The projections that fold events of the type; no other state changes. */
export function listFolding(type: EventType): readonly ProjectionName[] {
  return PROJECTION_NAMES.filter((name) => projectionOf(name).types.includes(type));
}

/** The change that one event made in the state of a projection. */
export type StateChange = Awaited<ReturnType<typeof findChange>>;

/** Finds how an event changes a state. It folds a copy, so the state stays as it is, and gives others their turns. */
export async function findChange<Name extends ProjectionName>(projection: Name, before: States[Name], event: Recorded) {
  const rewind = rewindOf(projection);
  const { state, characters } = await inTimeSlices(
    rewind === undefined ? copy(before) : putBack(rewind, before, event),
  );
  const after = projectionOf(projection).evolve(state, event);
  const differences = await findDifferences(before, after, rewind === undefined ? undefined : isMeant);
  const isShown = characters <= WHOLE_CHARACTERS_MAX && !PERSONAL.has(projection);
  return {
    projection,
    /** The first DIFFERENCES_MAX, in the order of the state; empty if nothing changed. */
    differences: rewind === undefined ? differences : differences.map(withoutReplaced),
    /** Both states; undefined if they are large, or name recipients that the event is not about. */
    whole: isShown ? { before, after } : undefined,
  };
}

/**
 * False for differences in the members for a rewind, which repeat each change, and in the order of entries: after a
 * rewind, only the order of the people means something.
 */
function isMeant({ path: [member, , below = ""], values }: Difference): boolean {
  if (member === "people") return !FOR_REWIND.includes(below);
  return !FOR_REWIND.includes(member) && values !== "reordered";
}

const FOR_REWIND: readonly unknown[] = ["replaced", "met", "changed", "rewinds_to"] satisfies (
  keyof Contact | keyof Contacts
)[];

/** Removes the members for a rewind from an entry that is shown as a whole, since it was added or removed. */
function withoutReplaced({ path, values }: Difference): Difference {
  if (values === "reordered" || path[0] !== "people" || path.length !== 2) return { path, values };
  const shown = (entry: unknown): unknown =>
    entry === undefined ? undefined : { ...(entry as Contact), replaced: undefined, met: undefined };
  return { path, values: { before: shown(values.before), after: shown(values.after) } };
}

const PERSONAL: ReadonlySet<ProjectionName> = new Set(PERSONAL_PROJECTIONS);

/**
 * A copy of a state that can be rewound; its JSON is long. The state ends before the event, so nothing that a rewind
 * needs was dropped.
 */
function* putBack(rewind: Rewind<unknown>, before: unknown, { position }: Recorded) {
  const state = yield* rewind(before, position - 1);
  if (state === undefined) throw new Error(`a state of before the event at ${position} is further than that`);
  return { state, characters: Infinity };
}

/** A copy of the state, and the length of its JSON. */
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
