/** What arrived somewhere: all counted, the newest kept. */
export interface Arrivals<T> {
  add(item: T): void;
  readonly total: number;
  /** Oldest first; `keptMax` to twice as many. */
  readonly kept: readonly T[];
}

export function createArrivals<T>(keptMax: number): Arrivals<T> {
  const kept: T[] = [];
  let total = 0;
  return {
    add(item) {
      total++;
      kept.push(item);
      // Dropped by halves: shifting each time would copy the whole list.
      if (kept.length > 2 * keptMax) kept.splice(0, keptMax);
    },
    get total() {
      return total;
    },
    kept,
  };
}

/** Texts and events are short, and tests look for each of them. */
export const TEXTS_KEPT = 10_000;

/** A whole request of Meta's may hold 1,000 events. */
export const BODIES_KEPT = 50;
