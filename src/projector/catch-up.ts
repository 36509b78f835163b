import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { ProjectionName } from "../../projections/all.ts";
import type { FoldedStates } from "../../projections/states.ts";
import { foldRange } from "./fold.ts";

/** Position up to which each projection is folded. */
export type Positions = Map<ProjectionName, number>;

export interface CatchUp {
  readonly to: number;
  /** Positions at which `onStop` is called on the way, each projection being there or further. */
  readonly stops?: Iterable<number>;
  readonly onStop?: (position: number) => Promise<void> | void;
  readonly onProgress?: ((position: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Brings projections that stand at different positions to one, in a single pass: each range of the log is folded into
 * those that have not seen it, and read by their types where that is less.
 */
export async function catchUpStates(
  store: EventStore<Event>,
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
