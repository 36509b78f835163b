import { isoTime } from "../platform/clock-ids-and-timers.ts";

/** Orders of day and month in a file's dates: `3/2/2026` is a day in February (`dmy`) or in March (`mdy`). */
export const DATE_ORDERS = ["dmy", "mdy"] as const;
export type DateOrder = (typeof DATE_ORDERS)[number];

/** A day, time, source or wording of a consent in its stored form; or why the text cannot be used. */
export type Parsed = string | { readonly fault: string };

/** Maximum length of a consent's `…_at` member, in characters: a time with nanoseconds and an offset. */
export const CONSENT_TIME_CHARS_MAX = 40;

/**
 * Earliest valid day of a consent. There were hardly any web forms before, and programs that know no date write 1970.
 */
const EARLIEST_DAY = "1995-01-01";

/** Time in ms by which a day may be ahead of UTC: in the easternmost time zone it begins 14 hours earlier. */
const DAY_AHEAD_MS = 14 * 3_600_000;

/** Time in ms by which the clock of the machine with the consent form may be ahead of ours. */
const CLOCK_AHEAD_MS = 5 * 60_000;

const DAY = /^\d{4}-\d\d-\d\d$/;

/**
 * Matches a date that begins with the year, as spreadsheets in Hungary, Japan and Korea write it. The month always
 * follows such a year.
 */
const YEAR_FIRST = /^(\d{4})([./-]) ?(\d{1,2})\2 ?(\d{1,2})\.?$/;

/** Matches day and month in either order, then the year, and perhaps a time of day. */
const YEAR_LAST = /^(\d{1,2})([./-]) ?(\d{1,2})\2 ?(\d{4}|\d{2})\.?(?:,? +(\d.*))?$/;

/** Matches a number of days since 1900, which is how spreadsheets hold a date. */
const SERIAL = /^[3-5]\d{4}(?:[.,]\d+)?$/;

const NO_TIME = "is neither a day such as 2026-03-02 nor a time with its offset such as 2026-03-02T10:15:00+01:00";

/**
 * Parses the day or time of a consent. `now`: in ms since 1970. A day is stored as a day, because its hour is unknown;
 * a time is converted to UTC.
 */
export function parseDay(text: string, now: number, order?: DateOrder): Parsed {
  if (text.length > CONSENT_TIME_CHARS_MAX) return { fault: NO_TIME };
  if (SERIAL.test(text))
    return { fault: `${text} is a spreadsheet's number for a date: format the column as 2026-03-02 and export again` };
  const written = toIsoDay(text, order);
  return typeof written === "string" ? parseInstant(written, now) : written;
}

function parseInstant(text: string, now: number): Parsed {
  let at: Temporal.Instant;
  try {
    at = DAY.test(text) ? Temporal.Instant.from(`${text}T00:00Z`) : Temporal.Instant.from(text);
  } catch (fault) {
    if (!(fault instanceof RangeError)) throw fault;
    return { fault: NO_TIME };
  }
  const ms = at.epochMilliseconds;
  if (ms < Date.parse(EARLIEST_DAY)) return { fault: `is before ${EARLIEST_DAY}` };
  if (ms > now + (DAY.test(text) ? DAY_AHEAD_MS : CLOCK_AHEAD_MS)) return { fault: "is in the future" };
  return DAY.test(text) ? text : isoTime(ms);
}

/** Converts a date in numbers to the form `2026-03-02`. Returns any other text unchanged. */
function toIsoDay(text: string, order: DateOrder | undefined): Parsed {
  const [isYearFirst, year = "", , month = "", day = ""] = YEAR_FIRST.exec(text) ?? [];
  if (isYearFirst !== undefined) return isoDay(year, month, day) ?? { fault: `${text} is no day of the calendar` };
  const [isYearLast, one = "", , other = "", lastYear = "", hour] = YEAR_LAST.exec(text) ?? [];
  if (isYearLast === undefined) return text;
  if (lastYear.length === 2) return { fault: `${text} has a short year: write it as 2026-03-02` };
  const [dayFirst, monthFirst] = [isoDay(lastYear, other, one), isoDay(lastYear, one, other)];
  const wanted = { dmy: dayFirst, mdy: monthFirst };
  if (dayFirst === undefined && monthFirst === undefined) return { fault: `${text} is no day of the calendar` };
  if (order === undefined && dayFirst !== monthFirst) return { fault: unclear(text, dayFirst, monthFirst) };
  const found = wanted[order ?? "dmy"];
  if (found === undefined) return { fault: `${text} is no date in the order ${order}` };
  return hour === undefined ? found : { fault: `${text} has a time without its offset: keep the day alone, ${found}` };
}

function unclear(text: string, dayFirst: string | undefined, monthFirst: string | undefined): string {
  const name = "name the order of the file's dates (--dates dmy or mdy)";
  if (dayFirst !== undefined && monthFirst !== undefined)
    return `${text} is ambiguous, ${dayFirst} or ${monthFirst}: write it so, or ${name}`;
  return `${text} is not written as ${dayFirst ?? monthFirst}: write it so, or ${name}`;
}

/** Formats a day as `2026-03-02`; undefined for a day that does not exist. */
function isoDay(year: string, month: string, day: string): string | undefined {
  const text = `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  const date = new Date(`${text}T00:00:00.000Z`);
  return Number.isNaN(date.getTime()) || !date.toISOString().startsWith(text) ? undefined : text;
}
