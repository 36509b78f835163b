import type { EventType, Folded } from "../events/catalog.ts";
import { projectionOf, type ProjectionName, type StateOf, type States } from "./all.ts";
import type { Projection } from "./projection.ts";

/** Folds events into some states. */
export interface Folding {
  readonly names: readonly ProjectionName[];
  /** Passes the event only to the projections that listen to its type. */
  evolve(event: Folded): void;
}

/** The states of several projections, folded together in one pass over the log. */
export interface FoldedStates<Name extends ProjectionName = ProjectionName> extends Folding {
  readonly names: readonly Name[];
  /** The state as of the last event. `evolve` may change it in place, so read it again after each event. */
  get<One extends Name>(name: One): StateOf<One>;
  replace(name: Name, state: unknown): void;
  /** Number of events that this projection has folded so far. */
  foldedBy(name: Name): number;
  /** All states, by name. */
  all(): Pick<States, Name>;
  /** Returns a folding that advances only these states. */
  part(names: readonly Name[]): Folding;
}

interface Slot {
  readonly projection: Projection<unknown>;
  state: unknown;
  folded: number;
}

/** Starts with the initial states, except for those in `from`. */
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
    all: () => Object.fromEntries(names.map((name) => [name, slotOf(name).state])) as Pick<States, Name>,
    part,
  };
}

/** Needs one lookup per event: most types concern two or three projections of ten, and some none. */
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
