import { DAY_MS, HOUR_MS } from "./parse-log-times.ts";

/**
 * Length of a quarter of an hour in ms. Counts over time are kept by quarters of an hour, because in every time zone of
 * today hours and days begin at one.
 */
export const QUARTER_MS = 15 * 60_000;

/** Maximum number of quarters of an hour kept: six weeks without a break. A quarter without events is not kept. */
export const QUARTERS_MAX = 4_000;

/** Counts by quarters of an hour: the start of each quarter (ms since 1970), and its counts. Ordered by first use. */
export type Quarters<Counts> = Map<number, Counts>;

/**
 * Returns the counts of the quarter of an hour that contains `ms` (since 1970). A new quarter beyond `max` removes the
 * one kept for longest.
 */
export function quarterAt<Counts>(
  quarters: Quarters<Counts>,
  ms: number,
  none: () => Counts,
  max = QUARTERS_MAX,
): Counts {
  const start = ms - (ms % QUARTER_MS);
  const known = quarters.get(start);
  if (known !== undefined) return known;
  const counts = none();
  quarters.set(start, counts);
  for (const oldest of quarters.keys()) {
    if (quarters.size <= max) break;
    quarters.delete(oldest);
  }
  return counts;
}

/** Time for which counts for the console's list of news are kept, in ms: three days, one of which may have 25 hours. */
const RECENT_MS = 3 * DAY_MS + HOUR_MS;

/**
 * Returns the counts of the quarter of an hour that contains `ms`, as {@link quarterAt} does, but a new quarter removes
 * those that began {@link RECENT_MS} before it.
 */
export function recentQuarterAt<Counts>(quarters: Quarters<Counts>, ms: number, none: () => Counts): Counts {
  const start = ms - (ms % QUARTER_MS);
  const known = quarters.get(start);
  if (known !== undefined) return known;
  const counts = none();
  quarters.set(start, counts);
  for (const oldest of quarters.keys()) if (start - oldest > RECENT_MS) quarters.delete(oldest);
  return counts;
}
