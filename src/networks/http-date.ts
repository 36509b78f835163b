const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const TIME = String.raw`(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)`;
const MONTH = `(?<month>${MONTHS.join("|")})`;

/** What is sent today, and two forms from before 1995 that are still to be read: RFC 9110, section 5.6.7. */
const FORMS = [
  String.raw`\w{3}, (?<day>\d\d) ${MONTH} (?<year>\d{4}) ${TIME} GMT`,
  String.raw`\w{6,9}, (?<day>\d\d)-${MONTH}-(?<year>\d\d) ${TIME} GMT`,
  String.raw`\w{3} ${MONTH} (?<day>[ \d]\d) ${TIME} (?<year>\d{4})`,
].map((form) => new RegExp(`^${form}$`));

/** A date of a header, in ms since the epoch, undefined for anything else. `now` tells the century of a short year. */
export function readHttpDate(text: string, now: number): number | undefined {
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
