import type { EventStore, Query } from "eventstore-lite";
import type { Event, EventType } from "../../events/catalog.ts";
import { projectionOf, type ProjectionName } from "../../projections/all.ts";
import type { Folding } from "../../projections/states.ts";

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
