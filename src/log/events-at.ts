import type { EventType, Recorded, LogStore } from "../../events/catalog.ts";

/** A reading costs as much as this many events read along with those that are wanted. */
const GAP_POSITIONS_MAX = 8;

/** The events at these positions, which are in order; neighbours are read at once. Throws where there is none. */
export async function* eventsAt(store: LogStore, positions: readonly number[]): AsyncGenerator<Recorded, void, void> {
  for (let at = 0; at < positions.length;) {
    const from = positions[at] ?? 0;
    let end = at + 1;
    while (end < positions.length && (positions[end] ?? 0) - (positions[end - 1] ?? 0) <= GAP_POSITIONS_MAX) end++;
    for await (const event of store.read({ from, to: positions[end - 1] ?? from })) {
      if (event.position !== positions[at]) continue;
      at++;
      yield event;
    }
    if (at < end) throw missing(positions[at]);
  }
}

export async function eventAt(store: LogStore, position: number): Promise<Recorded> {
  for await (const event of store.read({ from: position, to: position })) return event;
  throw missing(position);
}

/** The last event of a type, up to position `to`; undefined: there is none. */
export async function findLast<Type extends EventType>(
  store: LogStore,
  type: Type,
  to = Number.MAX_SAFE_INTEGER,
): Promise<Recorded<Type> | undefined> {
  if (to < 1) return undefined;
  for await (const event of store.read({ types: [type], to, backwards: true, limit: 1 }))
    return event as Recorded<Type>;
  return undefined;
}

function missing(position: number | undefined): Error {
  return new Error(`the log has no event at position ${position}`);
}

/** Positions that were found in any order, and some of them more than once, in the order of the log. */
export function inOrder(positions: Iterable<number>): readonly number[] {
  return [...new Set(positions)].sort((a, b) => a - b);
}
