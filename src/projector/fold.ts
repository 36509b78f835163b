import type { EventStore } from "eventstore-lite";
import type { Event, EventType } from "../../events/catalog.ts";
import { projectionOf, type ProjectionName, type States } from "../../projections/all.ts";
import { createStates, type Folding } from "../../projections/states.ts";

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

export interface FoldRange {
  /** Both inclusive. */
  readonly from: number;
  readonly to: number;
  readonly onProgress?: ((position: number) => void) | undefined;
  /** Ends the folding early, between two batches of events. */
  readonly signal?: AbortSignal | undefined;
}

/** Folds a range of the log. Answers how many events were read, and the position that is reached. */
export async function foldRange(
  store: EventStore<Event>,
  folding: Folding,
  { from, to, onProgress, signal }: FoldRange,
): Promise<{ readonly events: number; readonly position: number }> {
  const types = typesToRead(folding.names);
  let events = 0;
  for await (const batch of store.readFolded({ from, to, ...(types === undefined ? {} : { types }) })) {
    for (const event of batch) folding.evolve(event);
    events += batch.length;
    const position = batch.at(-1)?.position ?? from;
    onProgress?.(position);
    if (signal?.aborted === true) return { events, position };
  }
  return { events, position: to };
}

/** Most of a log are clicks and their dispatches: whoever wants those reads faster along the log than along the index. */
const BULK: readonly EventType[] = ["LinkClicked", "DispatchSucceeded"];

/** The types to ask the index for; undefined: the whole log is read. */
function typesToRead(names: readonly ProjectionName[]): readonly EventType[] | undefined {
  const types = [...new Set(names.flatMap((name) => projectionOf(name).types))];
  return types.some((type) => BULK.includes(type)) ? undefined : types;
}
