import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../../../events/catalog.ts";

/** Where a history is read from, up to and including a position. */
export interface Reading {
  readonly store: EventStore<Event>;
  readonly to: number;
  /** Told which position is read. */
  readonly onProgress: (position: number) => void;
}

/** All that the log tells of one subject. */
export interface History {
  /** Of its events, in the order of the log. */
  readonly positions: readonly number[];
  /** What it comes to: lines that are safe for a terminal. */
  readonly summary: string;
}

/** Positions that were found in any order, and some of them more than once, in the order of the log. */
export function inOrder(positions: Iterable<number>): readonly number[] {
  return [...new Set(positions)].sort((a, b) => a - b);
}

/** A reading costs as much as this many events read along with those that are wanted. */
const GAP_POSITIONS_MAX = 8;

/** The events at these positions, which are in order; neighbours are read at once. */
export async function* eventsAt(
  { store }: Pick<Reading, "store">,
  positions: readonly number[],
): AsyncGenerator<Recorded, void, void> {
  for (let at = 0; at < positions.length;) {
    const from = positions[at] ?? 0;
    let end = at + 1;
    while (end < positions.length && (positions[end] ?? 0) - (positions[end - 1] ?? 0) <= GAP_POSITIONS_MAX) end++;
    for await (const event of store.read({ from, to: positions[end - 1] ?? from })) {
      if (event.position !== positions[at]) continue;
      at++;
      yield event;
    }
    if (at < end) throw new Error(`the log has no event at position ${positions[at]}`);
  }
}
