/** Arrivals kept whole; older ones are only counted. */
const KEPT_MAX = 10_000;

/** What arrived somewhere: all counted, the newest kept. */
export interface Arrivals<T> {
  add(item: T): void;
  readonly total: number;
  /** Oldest first. */
  readonly kept: readonly T[];
}

export function createArrivals<T>(): Arrivals<T> {
  const kept: T[] = [];
  let total = 0;
  return {
    add(item) {
      total++;
      kept.push(item);
      // Dropped by halves: shifting each time would copy the whole list.
      if (kept.length > 2 * KEPT_MAX) kept.splice(0, KEPT_MAX);
    },
    get total() {
      return total;
    },
    kept,
  };
}
