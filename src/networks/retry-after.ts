/** Never at once, whatever a network says. */
const RETRY_AFTER_MIN_MS = 1000;

/**
 * The widest windows of any network are a day, and Telegram's flood waits are not known to be longer: what asks for more
 * is broken, and must not silence a channel for good. It is asked once a day then.
 */
export const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

/**
 * Seconds as a network gives them (`Retry-After`, Telegram's `retry_after`), in ms and within bounds; undefined for
 * what is no number: the caller's own back-off applies then.
 */
export function retryAfterMs(seconds: string | number | null | undefined): number | undefined {
  const text = String(seconds).trim();
  return /^-?\d+(\.\d+)?$/.test(text) ? bounded(Math.ceil(Number(text) * 1000)) : undefined;
}

/**
 * The answer's `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3), which counts from the answer's own `Date`,
 * so that a clock that differs from the network's makes the wait neither longer nor shorter.
 */
export function retryAfterOf(headers: Headers): number | undefined {
  const asked = headers.get("retry-after")?.trim();
  if (asked === undefined) return undefined;
  const answeredAt = readHttpDate(headers.get("date") ?? "", 0);
  const until = answeredAt === undefined ? undefined : readHttpDate(asked, answeredAt);
  return until === undefined || answeredAt === undefined ? retryAfterMs(asked) : bounded(until - answeredAt);
}

function bounded(ms: number): number {
  return Math.min(RETRY_AFTER_MAX_MS, Math.max(RETRY_AFTER_MIN_MS, ms));
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const TIME = String.raw`(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)`;
const MONTH = `(?<month>${MONTHS.join("|")})`;

/** What is sent today, and two forms from before 1995 that are still to be read: RFC 9110, section 5.6.7. */
const FORMS = [
  String.raw`\w{3}, (?<day>\d\d) ${MONTH} (?<year>\d{4}) ${TIME} GMT`,
  String.raw`\w{6,9}, (?<day>\d\d)-${MONTH}-(?<year>\d\d) ${TIME} GMT`,
  String.raw`\w{3} ${MONTH} (?<day>[ \d]\d) ${TIME} (?<year>\d{4})`,
].map((form) => new RegExp(`^${form}$`));

/** A date of a header, in ms since the epoch, undefined for anything else. `now` decides the century of a short year. */
function readHttpDate(text: string, now: number): number | undefined {
  for (const form of FORMS) {
    const found = form.exec(text)?.groups;
    if (found === undefined) continue;
    const { year = "", month = "", day, hour, minute, second } = found;
    const years = year.length === 2 ? fullYear(Number(year), now) : Number(year);
    return Date.UTC(years, MONTHS.indexOf(month), Number(day), Number(hour), Number(minute), Number(second));
  }
  return undefined;
}

/** More than 50 years ahead a year of two digits is one of the past. */
function fullYear(year: number, now: number): number {
  const thisYear = new Date(now).getUTCFullYear();
  const near = thisYear - (thisYear % 100) + year;
  return near > thisYear + 50 ? near - 100 : near;
}
