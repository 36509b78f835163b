import type { EventType, Recorded } from "../../events/event-types-and-codec.ts";
import {
  PERSONAL_PROJECTIONS,
  PROJECTION_NAMES,
  projectionOf,
  rewindOf,
  type ProjectionName,
  type Rewind,
  type States,
} from "../../projections/all.ts";
import type { Contact, Contacts } from "../../projections/contact-state.ts";
import { createStateDecoder, encodePieces } from "../../projections/encode-state.ts";
import { inTimeSlices } from "../platform/work-in-time-slices.ts";
import { DIFFERENCES_MAX, findDifferences, formatPath, formatValue, type Difference } from "./compare-states.ts";
import { PAST_WAIT_MS, type PastStates } from "./past-states.ts";

/** Maximum length of a state that is shown as a whole, in characters of its JSON: a few screens. */
const WHOLE_CHARACTERS_MAX = 2_000;

/** Lists the projections that fold events of the type. The event changes no other state. */
export function listFolding(type: EventType): readonly ProjectionName[] {
  return PROJECTION_NAMES.filter((name) => projectionOf(name).types.includes(type));
}

/**
 * Describes, for a page, how an event changed a projection's state: that of the projection `asked`, or else of the
 * first that it changed.
 */
export async function describeChange(past: PastStates, event: Recorded, asked: string | undefined) {
  const known = PROJECTION_NAMES.find((name) => name === asked);
  const folding = listFolding(event.type);
  const names = known === undefined ? folding : folding.filter((name) => name === known);
  const change = await findFirst(past, event, names);
  const choices = PROJECTION_NAMES.map((name) => ({ name, isFolding: folding.includes(name) }));
  if (change === "not ready") return { choices, isReady: false as const };
  return {
    choices,
    isReady: true as const,
    /** Name of the described projection. Undefined if the event changed no state. */
    projection: known ?? change?.projection,
    /** Differences between the state before and after the event, as texts; empty if it is unchanged. */
    differences: change?.differences.map(toText) ?? [],
    isCut: (change?.differences.length ?? 0) >= DIFFERENCES_MAX,
    whole: change?.whole && { before: formatState(change.whole.before), after: formatState(change.whole.after) },
  };
}

/**
 * Finds the first of these projections that the event changed, and how. Stops at the first, because opening all of them
 * takes a second in a long log.
 */
async function findFirst(past: PastStates, event: Recorded, names: readonly ProjectionName[]) {
  const begun = performance.now();
  for (const name of names) {
    const isLate = performance.now() - begun > PAST_WAIT_MS;
    const states = isLate ? undefined : await past.at(event.position - 1, [name]);
    if (states === undefined) return "not ready";
    const change = await findChange(name, states[name], event);
    if (change.differences.length > 0) return change;
  }
  return undefined;
}

/** Converts a difference to texts. A value is undefined if it is absent in that state. */
function toText({ path, values }: Difference) {
  const where = formatPath(path);
  if (values === "reordered") return { where, isReordered: true as const };
  const [before, after] = [values.before, values.after].map((value) =>
    value === undefined ? undefined : formatValue(value),
  );
  return { where, isReordered: false as const, before, after };
}

/** Formats a state as JSON, with Maps as objects, which are easier to read. */
function formatState(state: unknown): string {
  return JSON.stringify(state, (_key, inner: unknown) => (inner instanceof Map ? Object.fromEntries(inner) : inner), 2);
}

/** Finds how an event changes a projection's state. Folds a copy in time slices, so the given state stays as it is. */
export async function findChange<Name extends ProjectionName>(projection: Name, before: States[Name], event: Recorded) {
  const rewind = rewindOf(projection);
  const { state, characters } = await inTimeSlices(
    rewind === undefined ? copy(before) : putBack(rewind, before, event),
  );
  const after = projectionOf(projection).evolve(state, event);
  const differences = await findDifferences(before, after, projection === "contacts" ? isMeant : undefined);
  const isShown = characters <= WHOLE_CHARACTERS_MAX && !PERSONAL.has(projection);
  return {
    projection,
    /**
     * Differences between the state before and after the event, in the order of the state, at most DIFFERENCES_MAX;
     * empty if nothing changed.
     */
    differences: projection === "contacts" ? differences.map(withoutReplaced) : differences,
    /**
     * State before and after the event; undefined if the states are large, or if the projection holds personal data.
     */
    whole: isShown ? { before, after } : undefined,
  };
}

/**
 * False for differences between contacts that readers need not see: in members that only serve a rewind, because they
 * repeat each change, and in the order of entries other than `people`, because a rewind does not restore that order.
 */
function isMeant({ path: [member, , below = ""], values }: Difference): boolean {
  if (member === "people") return !FOR_REWIND.includes(below);
  return !FOR_REWIND.includes(member) && values !== "reordered";
}

const FOR_REWIND: readonly unknown[] = ["replaced", "met", "changed", "rewinds_to"] satisfies (
  keyof Contact | keyof Contacts
)[];

/**
 * Removes the members that serve only to restore past states, if the difference shows a whole contact that was added or
 * removed.
 */
function withoutReplaced({ path, values }: Difference): Difference {
  if (values === "reordered" || path[0] !== "people" || path.length !== 2) return { path, values };
  const shown = (entry: unknown): unknown =>
    entry === undefined ? undefined : { ...(entry as Contact), replaced: undefined, met: undefined };
  return { path, values: { before: shown(values.before), after: shown(values.after) } };
}

const PERSONAL: ReadonlySet<ProjectionName> = new Set(PERSONAL_PROJECTIONS);

/**
 * Copies a state that can be rewound, and rewinds the copy to right before the event. Returns Infinity as the number of
 * characters, so that the page shows only what the event changed and not the whole state.
 */
function* putBack(rewind: Rewind<unknown>, before: unknown, { position }: Recorded) {
  const state = yield* rewind(before, position - 1);
  if (state === undefined) throw new Error(`a state of before the event at ${position} is further than that`);
  return { state, characters: Infinity };
}

/** Copies a state, and returns the copy and the length of the state's JSON. */
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
