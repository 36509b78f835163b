import type { Query } from "eventstore-lite";
import type { EventType, LogStore } from "../../events/catalog.ts";
import { projectionOf, type ProjectionName } from "../../projections/all.ts";
import type { Folding, FoldedStates } from "../../projections/states.ts";

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
  store: LogStore,
  folding: Folding,
  { from, to, onProgress, signal }: FoldRange,
): Promise<{ readonly events: number; readonly position: number }> {
  let events = 0;
  for await (const batch of store.readFolded({ from, to, ...queryFor(folding.names) })) {
    for (const event of batch) folding.evolve(event);
    events += batch.length;
    const position = batch.at(-1)?.position ?? from;
    onProgress?.(position);
    if (signal?.aborted === true) return { events, position };
  }
  onProgress?.(to);
  return { events, position: to };
}

/** Most of a log are clicks and their dispatches: reading them along the log is faster than along the index. */
const BULK: readonly EventType[] = ["LinkClicked", "DispatchSucceeded"];

/** Where it is most of the log in any case, nothing is left out: to test each type would cost more than it saves. */
function queryFor(names: readonly ProjectionName[]): Pick<Query, "types" | "alongLog"> {
  const types = [...new Set(names.flatMap((name) => projectionOf(name).types))];
  if (BULK.every((type) => types.includes(type))) return {};
  return BULK.some((type) => types.includes(type)) ? { types, alongLog: true } : { types };
}

/** Whether the way from one state to the next is as long as the log between them, however little of it counts. */
export function isReadAlongLog(name: ProjectionName): boolean {
  return projectionOf(name).types.some((type) => BULK.includes(type));
}

export type Positions = Map<ProjectionName, number>;

export interface CatchUp extends Omit<FoldRange, "from"> {
  /** Positions at which `onStop` is called on the way, each projection being there or further. */
  readonly stops?: Iterable<number>;
  readonly onStop?: (position: number) => Promise<void> | void;
}

/**
 * Brings projections that stand at different positions to one, in a single pass: each range of the log is folded into
 * those that have not seen it, and read by their types where that is less.
 */
export async function catchUpStates(
  store: LogStore,
  states: Pick<FoldedStates, "names" | "part">,
  positions: Positions,
  { to, stops = [], onStop, onProgress, signal }: CatchUp,
): Promise<void> {
  let from = Math.min(to, ...positions.values());
  const ends = new Set([...positions.values(), ...stops, to]);
  for (const end of [...ends].filter((stop) => stop > from && stop <= to).sort((a, b) => a - b)) {
    const behind = states.names.filter((name) => (positions.get(name) ?? 0) <= from);
    const range = { from: from + 1, to: end, onProgress, signal };
    const { position } = await foldRange(store, states.part(behind), range);
    for (const name of behind) positions.set(name, position);
    if (signal?.aborted === true) return;
    from = end;
    await onStop?.(end);
  }
}
