/** Folds a log from its first event, as the reference with which other ways to compute past states are compared. */
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/event-types-and-codec.ts";
import type { ProjectionName, SomeStates } from "../../projections/all.ts";
import { createStates } from "../../projections/fold-states.ts";
import { foldRange } from "../../src/projector/fold-range.ts";

export interface FoldOptions {
  /** Position of the last event to fold; default: the end of the log. */
  readonly to?: number;
  /** Events that were recorded after this time are ignored. */
  readonly until?: Date;
  /** Called now and then during the fold, with the position of the event just folded. */
  readonly onProgress?: (position: number) => void;
}

export interface Folded<Name extends ProjectionName> {
  readonly states: SomeStates<Name>;
  /** Position of the last event up to the given end; 0 if there is none. */
  readonly position: number;
  /** Time of the event at `position`; undefined if there is none. */
  readonly time: string | undefined;
  /** Number of events read. Events that no folded projection uses may be left out. */
  readonly events: number;
}

/** Folds the named projections from the start of the log up to a position or time. */
export async function foldLog<Name extends ProjectionName>(
  store: EventStore<Event>,
  names: readonly Name[],
  { to, until, onProgress }: FoldOptions = {},
): Promise<Folded<Name>> {
  const bounds = { ...(to === undefined ? {} : { to }), ...(until === undefined ? {} : { until }) };
  const [end] = await Array.fromAsync(store.read({ ...bounds, backwards: true, limit: 1 }));
  const states = createStates(names);
  if (end === undefined) return { states: states.all(), position: 0, time: undefined, events: 0 };
  const { position, time } = end;
  const { events } = await foldRange(store, states, { from: 1, to: position, onProgress });
  return { states: states.all(), position, time, events };
}
