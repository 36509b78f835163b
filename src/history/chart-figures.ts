// Counts for the totals and charts of console pages: periods, histogram bars and the time ranges of charts.
import { HOUR_MS } from "../../projections/parse-log-times.ts";
import { countPeopleAt } from "../../projections/contact-state.ts";
import { channelsOf } from "../../projections/deliveries.ts";
import { labelOf, periodsOf, type PeriodsQuery } from "../../projections/sum-quarters-to-hours-and-days.ts";
import { QUARTER_MS, QUARTERS_MAX, type Quarters } from "../../projections/count-by-quarter-hour.ts";
import { noClicks, type SuspectedCounts } from "../../projections/clicks-suspected-as-networks-own.ts";
import { noMessages } from "../../projections/message-totals.ts";
import type { PageMoment } from "../projector/moment-of-console-page.ts";
import { sumRecentMessages } from "./sum-replies-clicks-and-conversions.ts";

/** Counts the messages by outcome: all of them, and those of the last 30 days with their rates. */
export async function readTotals(moment: PageMoment<"results" | "run" | "stats">) {
  const { state } = moment;
  const { sent, skipped, failed, contacted } = state("stats");
  const inDoubt = [...state("run").open.values()].filter((attempt) => attempt.in_doubt).length;
  const recent = await sumRecentMessages(moment);
  return { sent, skipped: skipped - contacted, contacted, failed, inDoubt, recent };
}

/** A figure at the page's moment (`before`) and now (`after`). */
export interface ChangedFigure {
  readonly label: string;
  readonly before: number;
  readonly after: number;
}

/** Compares figures of an earlier moment with those of now. */
export function readChangedFigures(moment: PageMoment<"deliveries" | "stats" | "suspected">): readonly ChangedFigure[] {
  const { state, stateNow, position } = moment;
  const contacts = stateNow("contacts");
  // Counts the contacts of the present state whose first event came at or before `position`. Folding the contacts up to
  // `position` instead would take long.
  const then = readFigures(state, countPeopleAt(contacts, position));
  const now = readFigures(stateNow, contacts.people.size);
  return then.map(([label, before], at) => ({ label, before, after: now[at]?.[1] ?? 0 }));
}

function readFigures(
  state: PageMoment<"deliveries" | "stats" | "suspected">["state"],
  recipients: number,
): readonly (readonly [label: string, count: number])[] {
  const { sent, skipped, failed, contacted } = state("stats");
  const { clicks, suspected } = state("suspected").all;
  const channels = channelsOf(state("deliveries"));
  return [
    ["Sent", sent],
    ["Skipped", skipped - contacted],
    ["Failed", failed],
    ["Clicks by people", clicks - suspected],
    ["Dispatches", channels.reduce((sum, [, { dispatched }]) => sum + dispatched, 0)],
    ["Recipients", recipients],
  ];
}

/** Choice of the periods that a chart shows. */
export interface PeriodsChoice extends PeriodsQuery {
  /** True if the chart begins with the first period in which something is counted. */
  readonly isFitted: boolean;
}

/** Counts of one period of a chart. */
interface CountedPeriod<Kind extends string> {
  /** Label of the period, such as `2026-11-20` or `14:00`. */
  readonly label: string;
  readonly counts: Readonly<Record<Kind, number>>;
  /**
   * Counts of the corresponding period in the time before the chart, which has the same length. Undefined if the chart
   * does not compare.
   */
  readonly before?: Readonly<Record<Kind, number>>;
}

export function countMessagePeriods({ state }: PageMoment<"timeline">, choice: PeriodsChoice) {
  return countPeriods(state("timeline").quarters, choice, {
    none: noMessages,
    toCounts: ({ sent, skipped, failed, contacted }) => ({ sent, skipped: skipped - contacted, failed }),
  });
}

/** Counts of clicks for each quarter of an hour. */
export type ClickQuarters = Quarters<SuspectedCounts>;

/** Counts clicks in each period by who made them: people, suspected programs, bots. */
export function countClickPeriods(quarters: ClickQuarters, choice: PeriodsChoice) {
  return countPeriods(quarters, choice, {
    none: noClicks,
    toCounts: ({ clicks, suspected, bots }) => ({ people: clicks - suspected, suspected, bots }),
  });
}

interface Counting<Counts, Kind extends string> {
  readonly none: () => Counts;
  readonly toCounts: (counts: Counts) => Readonly<Record<Kind, number>>;
}

function countPeriods<Counts extends Record<keyof Counts, number>, Kind extends string>(
  quarters: Quarters<Counts>,
  { isFitted, ...query }: PeriodsChoice,
  { none, toCounts }: Counting<Counts, Kind>,
): readonly CountedPeriod<Kind>[] {
  const all = periodsOf(quarters, query, none).map((period) => ({ ...period, counts: toCounts(period.counts) }));
  const shown = isFitted ? fitToData(all) : all;
  const earlier = { ...query, count: shown.length, until: (shown[0]?.start ?? 0) - 1 };
  const before = periodsOf(quarters, earlier, none);
  const [oldest = 0] = quarters.keys();
  // Shows earlier counts only if the projection still keeps all of the earlier periods. If it had dropped a part, the
  // counts would be too low.
  const isKept = quarters.size < QUARTERS_MAX || oldest <= (before[0]?.start ?? 0);
  return shown.map(({ start, counts }, at) => ({
    label: labelOf(start, query),
    counts,
    ...(isKept ? { before: toCounts(before[at]?.counts ?? none()) } : {}),
  }));
}

/**
 * Finds the hour of the chart with the most clicks by people, in ms since 1970; undefined if no person clicked. If
 * several hours have as many, returns the latest one, and `others` is the number of the rest.
 */
export function findBestHour(quarters: ClickQuarters, choice: PeriodsChoice) {
  const start = startOfPeriods(choice);
  const shown = [...quarters].filter(([quarter]) => quarter >= start && quarter <= choice.until);
  const hours = Map.groupBy(shown, ([quarter]) => toHour(quarter, choice.timezone));
  const counted = [...hours].map(([from, all]) => {
    return { from, people: all.reduce((sum, [, { clicks, suspected }]) => sum + clicks - suspected, 0) };
  });
  const people = Math.max(0, ...counted.map((hour) => hour.people));
  if (people === 0) return undefined;
  const best = counted.filter((hour) => hour.people === people);
  const from = Math.max(...best.map((hour) => hour.from));
  return { from, to: from + HOUR_MS, people, others: best.length - 1 };
}

/** Returns the start of the first period, in ms since 1970. */
export function startOfPeriods(choice: PeriodsChoice): number {
  return periodsOf(new Map(), choice, noClicks)[0]?.start ?? 0;
}

/** Returns the start of the clock's hour that contains `ms`; both in ms since 1970. */
function toHour(ms: number, timezone: string): number {
  const zoned = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone);
  return zoned.round({ smallestUnit: "hour", roundingMode: "floor" }).epochMilliseconds;
}

/** Minimum number of periods that a chart shows, even if nothing is counted in the first ones. */
const PERIODS_MIN = 12;

/**
 * Removes the first periods of a chart if nothing is counted in them, but keeps at least {@link PERIODS_MIN} periods.
 */
export function fitToData<Fitted extends { readonly counts: object }>(periods: readonly Fitted[]): readonly Fitted[] {
  const first = periods.findIndex(({ counts }) => Object.values(counts).some((count: number) => count > 0));
  return first === -1 ? periods : periods.slice(Math.max(0, Math.min(first, periods.length - PERIODS_MIN)));
}

/**
 * Number of events in the quarter of an hour that begins at `start`, in ms since 1970. `count` includes those that
 * `failed`.
 */
export interface QuarterCount {
  readonly start: number;
  readonly count: number;
  readonly failed: number;
}

/** Counts messages and clicks in each quarter of an hour, up to now even if the page shows an earlier moment. */
export function* countQuarters(stateNow: PageMoment["stateNow"]): Generator<QuarterCount, void, void> {
  for (const [start, { sent, skipped, failed }] of stateNow("timeline").quarters)
    yield { start, count: sent + skipped + failed, failed };
  for (const [start, { clicks, bots }] of stateNow("suspected").quarters)
    yield { start, count: clicks + bots, failed: 0 };
}

/** Number of bars of a histogram: more would be too narrow to see on a phone. */
const HISTOGRAM_BARS = 100;

export type HistogramBars = ReturnType<typeof countBars>;

/** Counts events in bars of equal length between two moments. No bars if the moments are only minutes apart. */
export function countBars(
  { from, to }: { readonly from: number; readonly to: number },
  quarters: Iterable<QuarterCount>,
) {
  const length = Math.min(HISTOGRAM_BARS, Math.floor((to - from) / QUARTER_MS));
  if (length < 2) return [];
  const bars = Array.from({ length }, () => ({ count: 0, failed: 0 }));
  for (const { start, count, failed } of quarters) {
    const bar = bars[Math.max(0, Math.min(length - 1, Math.floor(((start - from) / (to - from)) * length)))]!;
    bar.count += count;
    bar.failed += failed;
  }
  return bars;
}

/** The time range of a chart, as the address of a page gives it. */
export interface ChartRange {
  /** First day of the chart. Undefined or no day: not chosen. */
  readonly from: string | undefined;
  /** Last day of the chart. Undefined or no day: not chosen. */
  readonly to: string | undefined;
  readonly range: keyof typeof RANGES | undefined;
  /** The moment of the page, in ms since 1970. */
  readonly now: number;
  readonly timezone: string;
}

/**
 * Maximum number of days in a chart. A longer chart would make a page heavy, and if there is much traffic, the
 * projection keeps the counts of fewer days.
 */
const DAYS_MAX = 90;

/** Ranges of time that a reader may choose for a chart. */
const RANGES = {
  "24h": { unit: "hour", count: 24, words: "24 h" },
  "7d": { unit: "day", count: 7, words: "7 d" },
  "30d": { unit: "day", count: 30, words: "30 d" },
  "90d": { unit: "day", count: DAYS_MAX, words: "90 d" },
} as const;

export const RANGE_NAMES = Object.keys(RANGES) as readonly (keyof typeof RANGES)[];

/**
 * Number of periods in a chart for which no range is chosen: enough to show how days or weeks repeat. First periods
 * without data are removed.
 */
const FITTED = { hour: 48, day: 30 } as const;

export type PeriodUnit = keyof typeof FITTED;

/**
 * Returns the periods of the days `from` to `to`; if there are too many days, of the last ones. Up to two days are
 * divided into hours.
 */
export function chooseOwnRange({ now, timezone, ...texts }: ChartRange): PeriodsChoice | undefined {
  const [from, to] = [parseDay(texts.from, timezone), parseDay(texts.to, timezone)];
  if (from === undefined && to === undefined) return undefined;
  const today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone).startOfDay();
  const last = to === undefined || to.epochMilliseconds > now ? today : to;
  const first = from ?? last.subtract({ days: FITTED.day - 1 });
  const days = 1 + first.until(last, { largestUnit: "day" }).days;
  if (days < 1) return undefined;
  const until = Math.min(now, last.add({ days: 1 }).epochMilliseconds - 1);
  if (days > 2) return { unit: "day", count: Math.min(days, DAYS_MAX), until, timezone, isFitted: false };
  const hours = Math.ceil((until + 1 - first.epochMilliseconds) / HOUR_MS);
  return { unit: "hour", count: hours, until, timezone, isFitted: false };
}

/** Lists the ranges that a reader may choose with one click: the query parameters, and words for the range. */
export function listRanges({ now, timezone, from, to, range }: ChartRange) {
  const today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone).toPlainDate();
  const yesterday = today.subtract({ days: 1 }).toString();
  const own = chooseOwnRange({ now, timezone, from, to, range });
  const named = [undefined, ...RANGE_NAMES].map((name) => ({
    fields: { range: name, from: undefined, to: undefined },
    words: name === undefined ? "Fitted" : RANGES[name].words,
    isCurrent: own === undefined && name === range,
  }));
  const isYesterday = from === yesterday && to === yesterday;
  const ofYesterday = { range: undefined, from: yesterday, to: yesterday };
  const [fitted, lastDay, ...longer] = named;
  // "Yesterday" stands right after "24 h", because a narrow phone screen cuts off the last ranges of the row.
  return [fitted!, lastDay!, { fields: ofYesterday, words: "Yesterday", isCurrent: isYesterday }, ...longer];
}

/** Parses a day, ISO 8601. Undefined if the text is not a day. */
function parseDay(text: string | undefined, timezone: string) {
  try {
    return Temporal.PlainDate.from(text ?? "").toZonedDateTime(timezone);
  } catch {
    return undefined;
  }
}

/** Returns the periods of a range; without one, the newest periods of length `unit`. */
export function choosePeriods(query: ChartRange, unit: PeriodUnit): PeriodsChoice {
  const { range, now, timezone } = query;
  const own = chooseOwnRange(query);
  if (own !== undefined) return own;
  const chosen = range === undefined ? { unit, count: FITTED[unit] } : RANGES[range];
  return { unit: chosen.unit, count: chosen.count, until: now, timezone, isFitted: range === undefined };
}

/** The periods of a chart in words, such as `day, last 30 days`. */
export function periodsInWords(
  range: ChartRange,
  { unit, count }: PeriodsChoice,
  bars: readonly { readonly label: string }[],
): string {
  const ends = [bars[0], bars.at(-1)].map((bar) => bar?.label);
  const words = chooseOwnRange(range) === undefined ? `last ${count} ${unit}s` : `${ends[0]} to ${ends[1]}`;
  return `${unit}, ${words}`;
}
