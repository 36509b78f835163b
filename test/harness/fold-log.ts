/** The truth that other ways to a moment are held against: the log, folded from its first event. */
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { ProjectionName, States } from "../../projections/all.ts";
import { createStates } from "../../projections/states.ts";
import { foldRange } from "../../src/projector/fold-range.ts";

export interface FoldOptions {
  /** Last position folded; default: the end of the log. */
  readonly to?: number;
  /** Only what was recorded at or before this moment. */
  readonly until?: Date;
  /** Told now and then which position is folded. */
  readonly onProgress?: (position: number) => void;
}

export interface Folded<Name extends ProjectionName> {
  readonly states: Pick<States, Name>;
  /** The last position that counts; 0: nothing happened yet. */
  readonly position: number;
  /** When that position was recorded. */
  readonly time: string | undefined;
  /** Events read: those of the types that the projections listen to, or all. */
  readonly events: number;
}

/** What the named projections say of the log up to a moment, folded from its start. */
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
