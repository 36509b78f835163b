import type { Query } from "eventstore-lite";
import type { EventType, LogStore } from "../../events/event-types-and-codec.ts";
import { projectionOf, type ProjectionName } from "../../projections/all.ts";
import type { Folding, FoldedStates } from "../../projections/fold-states.ts";
import type { TimeSlices } from "../platform/work-in-time-slices.ts";

export interface FoldRange {
  /** First position to fold, inclusive. */
  readonly from: number;
  /** Last position to fold, inclusive. */
  readonly to: number;
  readonly onProgress?: ((position: number) => void) | undefined;
  /** Signal that ends the folding early, between two batches of events. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Time slices, between which other work has its turn. If absent, other work has its turn only between two batches of
   * events.
   */
  readonly slices?: TimeSlices | undefined;
}

/**
 * Number of positions in the log between two checks if the fold's time slice is over, so that other work has its turn.
 * One check costs as much as a tenth of an event.
 */
export const STEP_EVENTS = 32;

/** Folds a range of the log. Returns how many events were read, and the position that was reached. */
export async function foldRange(
  store: LogStore,
  folding: Folding,
  { from, to, onProgress, signal, slices }: FoldRange,
): Promise<{ readonly events: number; readonly position: number }> {
  let events = 0;
  for await (const batch of store.readFolded({ ...queryFor(folding.names), from, to })) {
    for (const event of batch) {
      folding.evolve(event);
      if (slices !== undefined && event.position % STEP_EVENTS === 0 && slices.isOver()) await slices.next();
    }
    events += batch.length;
    const position = batch.at(-1)?.position ?? from;
    onProgress?.(position);
    if (signal?.aborted === true) return { events, position };
  }
  onProgress?.(to);
  return { events, position: to };
}

/**
 * Event types that make up most of a log. If a projection needs them, reading along the log is faster than along the
 * index.
 */
const BULK: readonly EventType[] = ["LinkClicked", "DispatchSucceeded"];

/**
 * Returns the query for the events that these projections need. It reads all types if most of the log is needed anyway,
 * because testing each type would cost more than it saves.
 */
function queryFor(names: readonly ProjectionName[]): Query {
  const types = [...new Set(names.flatMap((name) => projectionOf(name).types))];
  if (BULK.every((type) => types.includes(type))) return {};
  return BULK.some((type) => types.includes(type)) ? { types, alongLog: true } : { types };
}

/**
 * True if a fold of the projection reads the whole log in order, and not by an index just the events that the
 * projection needs.
 */
export function isReadAlongLog(name: ProjectionName): boolean {
  return projectionOf(name).types.some((type) => BULK.includes(type));
}

export type Positions = Map<ProjectionName, number>;

/**
 * Number of positions after which a long catch-up saves its states. If the start is killed, the next one resumes there.
 * The snapshots for past moments are taken at such positions too.
 */
const STRETCH_POSITIONS = 20_000;

/** Yields the positions at which a long catch-up saves its states. */
export function* stretches(from: number, to: number): Generator<number> {
  for (let stop = from + STRETCH_POSITIONS; stop < to; stop += STRETCH_POSITIONS) yield stop;
}

/** Some of the projections in {@link FoldedStates}, which are folded together. */
interface StatesInParts {
  readonly names: readonly ProjectionName[];
  readonly part: FoldedStates["part"];
}

export interface CatchUp extends Omit<FoldRange, "from"> {
  /**
   * Positions at which the catch-up calls `onStop`. At each call, every projection has been folded at least to that
   * position.
   */
  readonly stops?: Iterable<number>;
  readonly onStop?: (position: number) => Promise<void> | void;
}

/**
 * Brings projections at different positions to the same position in one pass. Folds each range of the log into the
 * projections that lack it. Reads only events of the types that these need, unless they need most of the log.
 */
export async function catchUpStates(
  store: LogStore,
  states: StatesInParts,
  positions: Positions,
  { to, stops = [], onStop, onProgress, signal, slices }: CatchUp,
): Promise<void> {
  let from = Math.min(to, ...positions.values());
  const ends = new Set([...positions.values(), ...stops, to]);
  for (const end of [...ends].filter((stop) => stop > from && stop <= to).sort((a, b) => a - b)) {
    const behind = states.names.filter((name) => (positions.get(name) ?? 0) <= from);
    // The positions move on after each batch, so that if the log gets out of reach within a range, only the remaining
    // part of the range is folded later.
    const reach = (position: number): void => {
      for (const name of behind) positions.set(name, position);
      onProgress?.(position);
    };
    await foldRange(store, states.part(behind), { from: from + 1, to: end, onProgress: reach, signal, slices });
    if (signal?.aborted === true) return;
    from = end;
    await onStop?.(end);
  }
}
