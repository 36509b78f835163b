import type { EventStore } from "eventstore-lite";
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
  if (names.some(isReadAlongLog)) return undefined;
  return [...new Set(names.flatMap((name) => projectionOf(name).types))];
}

/** Whether the way from one state to the next is as long as the log between them, however little of it counts. */
export function isReadAlongLog(name: ProjectionName): boolean {
  return projectionOf(name).types.some((type) => BULK.includes(type));
}
