/** The reference for other ways to compute past states: the log, folded from its first event. */
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { ProjectionName, States } from "../../projections/all.ts";
import { createStates } from "../../projections/states.ts";
import { foldRange } from "../../src/projector/fold-range.ts";

export interface FoldOptions {
  /** Last position folded; default: the end of the log. */
  readonly to?: number;
  /** Ignores events recorded after this time. */
  readonly until?: Date;
  /** Called now and then with the position just folded. */
  readonly onProgress?: (position: number) => void;
}

export interface Folded<Name extends ProjectionName> {
  readonly states: Pick<States, Name>;
  /** The last position that counts; 0 if there is none. */
  readonly position: number;
  /** Time of that event. */
  readonly time: string | undefined;
  /** Number of events read: of the types that the projections use, or of all types. */
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
