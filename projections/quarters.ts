/**
 * Counts over time are kept by quarters of an hour, because in every time zone of today hours and days begin with one.
 */
export const QUARTER_MS = 15 * 60_000;

/** Maximum number of quarters kept, of those in which something happened: six weeks without a break. */
export const QUARTERS_MAX = 4_000;

/** Start of a quarter (ms since 1970) -> its counts, in the order in which the quarters were first used. */
export type Quarters<Counts> = Map<number, Counts>;

/** Returns the counts of the quarter that `ms` (since 1970) is in. A new quarter removes the one kept for longest. */
export function quarterAt<Counts>(quarters: Quarters<Counts>, ms: number, none: () => Counts): Counts {
  const start = ms - (ms % QUARTER_MS);
  const known = quarters.get(start);
  if (known !== undefined) return known;
  const counts = none();
  quarters.set(start, counts);
  for (const oldest of quarters.keys()) {
    if (quarters.size <= QUARTERS_MAX) break;
    quarters.delete(oldest);
  }
  return counts;
}
