import type { EventType, Folded } from "../events/event-types-and-codec.ts";

/**
 * A fold over the log. `evolve` may change and return the state it was given, so a caller never keeps an older one.
 * A state holds only JSON values and Maps, so that it can be snapshotted; a changed `version` rebuilds it.
 */
export interface Projection<State> {
  readonly name: string;
  readonly version: number;
  /** Types of the events that the projection listens to; all others leave its state as it is. */
  readonly types: readonly EventType[];
  initial(): State;
  evolve(state: State, event: Folded): State;
}

/** Folds events one after the other into `state`, and returns the new state. */
export function fold<State>(projection: Projection<State>, state: State, events: Iterable<Folded>): State {
  let folded = state;
  for (const event of events) folded = projection.evolve(folded, event);
  return folded;
}
