/** Counts over time are kept by quarters of an hour: in every time zone of today, hours and days begin with one. */
export const QUARTER_MS = 15 * 60_000;

/** The quarters in which something happened that are kept: six weeks of them without a break. */
export const QUARTERS_MAX = 4_000;

/** Start of a quarter (ms since 1970) -> what happened in it. In the order in which they were first counted in. */
export type Quarters<Counts> = Map<number, Counts>;

/** The counts of the quarter that `ms` (since 1970) is in; for a new one, the quarter kept for longest goes. */
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
