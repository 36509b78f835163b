import type { EventType, Folded } from "../events/event-types-and-codec.ts";
import { projectionOf, type ProjectionName, type StateOf, type SomeStates } from "./all.ts";
import type { Projection } from "./projection.ts";

/** Folds events into the states of some projections. */
export interface Folding {
  readonly names: readonly ProjectionName[];
  /** Folds an event into the states of the projections that listen to its type. */
  evolve(event: Folded): void;
}

/** States of several projections, folded together in one pass over the log. */
export interface FoldedStates<Name extends ProjectionName = ProjectionName> extends Folding {
  readonly names: readonly Name[];
  /**
   * Returns a projection's state as of the last event. `evolve` may change it in place, so read it again after each
   * event.
   */
  get<One extends Name>(name: One): StateOf<One>;
  replace(name: Name, state: unknown): void;
  /** Returns how many events the projection has folded so far. */
  foldedBy(name: Name): number;
  /** Returns all states by the names of their projections. */
  all(): SomeStates<Name>;
  /** Returns a folding that advances only the states of these projections. */
  part(names: readonly Name[]): Folding;
}

interface Slot {
  readonly projection: Projection<unknown>;
  state: unknown;
  folded: number;
}

/** Creates the states of projections: those given in `from`, and the initial ones of all others. */
export function createStates<Name extends ProjectionName>(
  names: readonly Name[],
  from: ReadonlyMap<ProjectionName, unknown> = new Map(),
): FoldedStates<Name> {
  const slots = new Map<ProjectionName, Slot>();
  for (const name of names) {
    const projection = projectionOf(name);
    slots.set(name, { projection, state: from.has(name) ? from.get(name) : projection.initial(), folded: 0 });
  }
  const slotOf = (name: ProjectionName): Slot => {
    const slot = slots.get(name);
    if (slot === undefined) throw new Error(`${name} is not folded here`);
    return slot;
  };
  const part = (some: readonly Name[]): Folding => ({ names: some, evolve: dispatch(some.map(slotOf)) });
  return {
    names,
    evolve: part(names).evolve,
    get: <One extends Name>(name: One) => slotOf(name).state as StateOf<One>,
    replace(name, state) {
      slotOf(name).state = state;
    },
    foldedBy: (name) => slotOf(name).folded,
    all: () => Object.fromEntries(names.map((name) => [name, slotOf(name).state])) as SomeStates<Name>,
    part,
  };
}

/**
 * Creates the function that passes an event to the projections that listen to its type. One lookup per event: most
 * types concern two or three projections of ten, and some none.
 */
function dispatch(slots: readonly Slot[]): (event: Folded) => void {
  const listening = new Map<EventType, Slot[]>();
  for (const slot of slots) {
    for (const type of slot.projection.types) listening.set(type, [...(listening.get(type) ?? []), slot]);
  }
  return (event) => {
    const concerned = listening.get(event.type);
    if (concerned === undefined) return;
    for (const slot of concerned) {
      slot.state = slot.projection.evolve(slot.state, event);
      slot.folded++;
    }
  };
}
