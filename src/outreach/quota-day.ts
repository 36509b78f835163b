import { releasedAt, usedAt, type Quota, type QuotaMoment } from "../../projections/quota.ts";

/** The calendar day (YYYY-MM-DD) of a moment in an IANA time zone. */
export function dayIn(timezone: string, ms: number): string {
  return plainDate(timezone, ms).toString();
}

/** Returns when the day of `ms` ends in the time zone: the first millisecond of the next calendar day that exists. */
export function nextDayAt(timezone: string, ms: number): number {
  return plainDate(timezone, ms).add({ days: 1 }).toZonedDateTime(timezone).epochMilliseconds;
}

function plainDate(timezone: string, ms: number): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone).toPlainDate();
}

/** A moment as the quota counts it in an IANA time zone. */
export function momentIn(timezone: string, ms: number): QuotaMoment {
  return { ms, day: dayIn(timezone, ms), timezone };
}

/**
 * Returns when the quota has more places than at `moment`, or when the day ends if none is used; ms since the epoch.
 * Places return at the next midnight; after a change of the time zone, each returns 24 hours after its use.
 */
export function resetsAt(quota: Quota, limit: number, moment: QuotaMoment): number {
  const { timezone } = moment;
  const used = Math.min(usedAt(quota, moment), limit);
  if (used === 0) return nextDayAt(timezone, moment.ms);
  let next = moment;
  do {
    next = momentIn(timezone, releasedAt(quota, next) ?? nextDayAt(timezone, next.ms));
  } while (usedAt(quota, next) >= used);
  return next.ms;
}
