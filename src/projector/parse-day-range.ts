import { DAY_MS, toDay } from "../../projections/parse-log-times.ts";
import { ServiceError } from "../platform/service-error.ts";
import { parseMoment } from "./parse-moment.ts";

/**
 * Interval of whole UTC days, because visitors are told apart within one UTC day: from the start of `from` to the start
 * of `to`, in ms since 1970.
 */
export interface Interval {
  /** Start of the interval; undefined begins at the first event. */
  readonly from: number | undefined;
  /** End of the interval; undefined ends at the last event. */
  readonly to: number | undefined;
}

/**
 * Parses an interval of days. `now`, in ms since 1970, is its end if only `from` is given. Throws a ServiceError
 * (usage).
 */
export function parseInterval(from: string | undefined, to: string | undefined, now: number): Interval {
  const first = from === undefined ? undefined : startOfDay(from);
  const last = to === undefined ? undefined : startOfDay(to);
  const end = last ?? (first === undefined ? undefined : Math.max(first, now - (now % DAY_MS)));
  if (first !== undefined && end !== undefined && end < first)
    throw new ServiceError("usage", "the interval ends before it begins");
  return { from: first, to: end === undefined ? undefined : end + DAY_MS };
}

function startOfDay(text: string): number {
  const { until } = parseMoment(text, "UTC");
  if (until === undefined) throw new ServiceError("usage", `an interval is between days or times, not positions`);
  return until.getTime() - (((until.getTime() % DAY_MS) + DAY_MS) % DAY_MS);
}

/** Returns the interval of the same length before this one; undefined if this one begins with the log. */
export function precedingInterval({ from, to }: Interval): Interval | undefined {
  return from === undefined || to === undefined ? undefined : { from: from - (to - from), to: from };
}

/**
 * Creates a function that tests if a UTC day, or an ISO 8601 time, is within the interval. A day sorts before its
 * times.
 */
export function createBounds({ from, to }: Interval): (time: string) => boolean {
  const [first, end] = [from, to].map((ms) => (ms === undefined ? undefined : toDay(ms)));
  return (time) => (first === undefined || time >= first) && (end === undefined || time < end);
}

/**
 * Returns the index of the first entry of the interval, and that of the first one after it, by bisection. The entries are
 * in order of time.
 */
export function findBounds({ from, to }: Interval, entries: readonly { readonly at: string }[]): [number, number] {
  const firstSince = (ms: number): number => {
    const isSince = createBounds({ from: ms, to: undefined });
    let [low, high] = [0, entries.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (isSince(entries[middle]!.at)) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return [from === undefined ? 0 : firstSince(from), to === undefined ? entries.length : firstSince(to)];
}
