import type { Quarters } from "./count-by-quarter-hour.ts";

/** Unit of the periods that events are counted by: days of a calendar, or hours of a clock, in a time zone. */
interface PeriodUnit {
  readonly unit: "hour" | "day";
  readonly timezone: string;
}

/** Counts of a calendar day or a clock hour in a time zone. */
export interface Period<Counts> {
  /** Start of the period in ms since 1970. */
  readonly start: number;
  readonly counts: Counts;
}

export interface PeriodsQuery extends PeriodUnit {
  /** Number of periods to return; `until` is in the last one. */
  readonly count: number;
  /**
   * Any moment in the newest of the returned periods, in ms since 1970. Quarters of an hour that start after it are not
   * counted.
   */
  readonly until: number;
}

/** Returns the counts of each of the last hours or days, the oldest first, including those without events. */
export function periodsOf<Counts extends Record<keyof Counts, number>>(
  quarters: Quarters<Counts>,
  query: PeriodsQuery,
  none: () => Counts,
): readonly Period<Counts>[] {
  const periods = startsOf(query).map((start) => ({ start, counts: none() }));
  for (const [quarter, counts] of quarters) {
    if (quarter > query.until) continue;
    const period = periods.findLast(({ start }) => start <= quarter);
    if (period === undefined) continue;
    for (const kind of Object.keys(counts) as (keyof Counts)[]) {
      period.counts[kind] = (period.counts[kind] + counts[kind]) as Counts[keyof Counts];
    }
  }
  return periods;
}

/** Formats the start of a period: `2026-11-20` for a day, `2026-11-20 14:00` for an hour. */
export function labelOf(start: number, { unit, timezone }: PeriodUnit): string {
  const zoned = Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO(timezone);
  const day = zoned.toPlainDate().toString();
  return unit === "day" ? day : `${day} ${zoned.toPlainTime().toString({ smallestUnit: "minute" })}`;
}

/**
 * Returns the starts of the periods in ms since 1970. Counts by the calendar, because a day may have 23 or 25 hours,
 * and an hour of the clock may come twice.
 */
function startsOf({ unit, count, until, timezone }: PeriodsQuery): readonly number[] {
  const now = Temporal.Instant.fromEpochMilliseconds(until).toZonedDateTimeISO(timezone);
  const last = unit === "day" ? now.startOfDay() : now.round({ smallestUnit: "hour", roundingMode: "floor" });
  return Array.from({ length: count }, (_, at) => {
    const back = count - 1 - at;
    const start = unit === "day" ? last.subtract({ days: back }).startOfDay() : last.subtract({ hours: back });
    return start.epochMilliseconds;
  });
}
