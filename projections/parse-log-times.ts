/** Length of `YYYY-MM-DDTHH:MM:SS.mmmZ`, as the log writes all times until the year 10000. */
const USUAL_CHARACTERS = 24;

/**
 * Cache of the last time that was converted. Neighbours in the log are of the same day, and converting a date costs ten
 * times as much as converting a time of day.
 */
const last = { day: "", dayMs: 0, time: "", ms: 0 };

/** Length of a day as text, YYYY-MM-DD. */
export const DAY_CHARACTERS = 10;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

const lastDay = { number: Number.NaN, text: "" };

/**
 * Returns the UTC day of a moment in ms since 1970. The last result is cached, since each click needs it and successive
 * clicks are of the same day.
 */
export function toDay(ms: number): string {
  const number = Math.floor(ms / DAY_MS);
  if (number !== lastDay.number) {
    lastDay.text = Temporal.Instant.fromEpochMilliseconds(ms).toString().slice(0, DAY_CHARACTERS);
    lastDay.number = number;
  }
  return lastDay.text;
}

/** Converts a time as the log writes it to ms since 1970. No clock is read. */
export function msOf(time: string): number {
  // Events of one batch have one time, and several projections read it.
  if (time === last.time) return last.ms;
  if (time.length !== USUAL_CHARACTERS || !time.endsWith("Z")) return Temporal.Instant.from(time).epochMilliseconds;
  if (last.day === "" || !time.startsWith(last.day)) {
    const day = time.slice(0, DAY_CHARACTERS);
    last.dayMs = Temporal.Instant.from(`${day}T00:00Z`).epochMilliseconds;
    last.day = day;
  }
  const minutes = digits(time, 11, 13) * 60 + digits(time, 14, 16);
  last.ms = last.dayMs + (minutes * 60 + digits(time, 17, 19)) * 1_000 + digits(time, 20, 23);
  last.time = time;
  return last.ms;
}

function digits(text: string, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at++) number = number * 10 + text.charCodeAt(at) - 48;
  return number;
}
