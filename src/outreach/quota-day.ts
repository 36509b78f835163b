import { newestMs, releasedAt, usedAt, type Quota, type QuotaMoment } from "../../projections/quota.ts";
import type { StateContext } from "../log/event-log.ts";

/** The calendar day (YYYY-MM-DD) of a moment in an IANA time zone. */
export function dayIn(timezone: string, ms: number): string {
  return plainDate(timezone, ms).toString();
}

/**
 * Returns the time at which the calendar day of the moment `ms` ends in the time zone: its midnight or, if clocks skip
 * that, the first moment after.
 */
export function nextDayAt(timezone: string, ms: number): number {
  return plainDate(timezone, ms).add({ days: 1 }).toZonedDateTime(timezone).epochMilliseconds;
}

function plainDate(timezone: string, ms: number): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone).toPlainDate();
}

/** Returns the present time in ms, never before the newest event, so that setting the clock back frees no quota. */
export function newestMoment({ projector, clock }: StateContext): number {
  return Math.max(clock(), newestMs(projector.state("quota"), projector.time));
}

/** Returns a moment with its calendar day in an IANA time zone, as the daily quota counts it. */
export function momentIn(timezone: string, ms: number): QuotaMoment {
  return { ms, day: dayIn(timezone, ms), timezone };
}

/**
 * Returns the time at which a used-up daily quota allows a message again (ms since the epoch): midnight or, after a
 * change of time zone, 24 hours after the use. With nothing used, the end of the day.
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
