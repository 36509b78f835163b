/** The calendar day (YYYY-MM-DD) of a moment in an IANA time zone. */
export function dayIn(timezone: string, ms: number): string {
  return formatter(timezone).format(ms);
}

/** When the day of `ms` ends in the time zone: the first millisecond of the next calendar day. */
export function nextDayAt(timezone: string, ms: number): number {
  const today = dayIn(timezone, ms);
  let before = ms;
  // A calendar day lasts at most 25 hours where clocks change, 48 where a zone skips the date line.
  let after = ms + 49 * HOUR_MS;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (dayIn(timezone, middle) === today) before = middle;
    else after = middle;
  }
  return after;
}

const HOUR_MS = 3_600_000;

/** Intl formatters are slow to make; one a zone is enough. */
const formatters = new Map<string, Intl.DateTimeFormat>();

function formatter(timeZone: string): Intl.DateTimeFormat {
  const known = formatters.get(timeZone);
  if (known !== undefined) return known;
  // The Swedish locale writes ISO dates.
  const made = new Intl.DateTimeFormat("sv-SE", {
    timeZone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
  });
  formatters.set(timeZone, made);
  return made;
}
