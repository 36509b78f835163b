import { DAY_MS, toDay } from "../../projections/parse-log-times.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { formatDuration, grouped } from "../platform/format-numbers-and-lists.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { readOrReason } from "../platform/service-error.ts";
import {
  CLICKS_NOTE,
  describeMergedDays,
  GROUP_MEMBERS,
  isTrackedOnly,
  SEEN_NOTE,
  nameMember,
  namesIn,
  TRACKED_NOTE,
} from "./results-format.ts";
import { answerResults, describeDays, type ResultsReader } from "./results.operations.ts";
import { parseInterval } from "../projector/parse-day-range.ts";
import type { ReadMoment } from "../projector/moment-of-console-page.ts";
import { formatValues, GROUPINGS, type Figures } from "./results-figures.ts";
import { sumMessages, type ResultTable } from "./results.ts";

/** Number of days that the overview sums up. */
export const RESULT_DAYS_SHOWN = 30;

/** Sums up the messages of the last 30 days, and of the 30 days before. */
export function sumRecentMessages(moment: ReadMoment<"results">): Promise<ResultTable["total"]> {
  const { state, stateNow, hasNow, position, now } = moment;
  const days = parseInterval(startOfDays(RESULT_DAYS_SHOWN, now), undefined, now);
  // If this process holds the present results, only the messages of these days are restored to the moment of the page.
  // That is much faster than to load all results of that moment.
  return hasNow("results")
    ? sumMessages(stateNow("results"), days, moment.asOf === undefined ? undefined : position)
    : sumMessages(state("results"), days, undefined);
}

/** Returns a moment on the first of the last `days` UTC days. */
function startOfDays(days: number, now: number): string {
  return isoTime(now - (days - 1) * DAY_MS);
}

interface ResultsQuery {
  /** Property by which results are grouped. Undefined or unknown: by variant. */
  readonly by: string | undefined;
  /** Number of last days to show. Undefined: the days `from` to `to`. */
  readonly days: number | undefined;
  /**
   * First UTC day of the results, or a time in it; undefined for no limit. If `from` and `to` make no valid interval,
   * both are ignored.
   */
  readonly from: string | undefined;
  /** Last UTC day of the results, or a time in it; undefined for no limit. */
  readonly to: string | undefined;
}

interface ResultsMoment {
  readonly reader: ResultsReader;
  readonly now: number;
}

/** Returns the answer of the operation `results` for a page, with names and days in words. */
export async function readResults({ reader, now }: ResultsMoment, { days, from, to, ...query }: ResultsQuery) {
  const by = GROUPINGS.find((name) => name === query.by) ?? "variant";
  const chosen = days === undefined ? omitUndefined({ from, to }) : { from: startOfDays(days, now) };
  const ask = (interval: typeof chosen) => answerResults(reader, { by, ...interval });
  const found = await readOrReason(() => ask(chosen));
  const answer = typeof found === "string" ? await ask({}) : found;
  const { interval, previous_interval: previous, rows, verdicts } = answer;
  const names = namesIn([...rows, ...verdicts]);
  const members = GROUP_MEMBERS[by];
  const isTracked = isTrackedOnly(by);
  return {
    ...answer,
    groupings: GROUPINGS,
    /** Interval of the results in words. */
    days: `${interval.from === null && interval.to === null ? "All days" : describeDays(interval)}${
      previous === null ? "" : `, next to ${describeDays(previous)}`
    }. Days are UTC.`,
    /** First and last day of the results, as in the page's address. */
    from: interval.from === null ? undefined : toDay(Date.parse(interval.from)),
    to: interval.to === null ? undefined : toDay(Date.parse(interval.to) - DAY_MS),
    /** Value of all conversions in words, and its part for each message; null if there is none. */
    worth: {
      value: formatValues(answer.total.conversions.values, "value"),
      perMessage: formatValues(answer.total.conversions.values, "per_message"),
    },
    /** Note on days whose clicks are kept only as a sum; empty if there are none. */
    mergedDays: describeMergedDays({ mergedTo: answer.clicks_merged_to }),
    /** True if the figures of these groups count only clicks of recipients who permit tracking. */
    isTracked,
    note: `${isTracked ? TRACKED_NOTE : CLICKS_NOTE}${answer.total.seen > 0 ? ` ${SEEN_NOTE}` : ""}`,
    members,
    /** Rows of the results, each with the texts that name it, such as template and variant. */
    rows: rows.map((row) => ({ ...row, names: members.map((member) => nameMember(row, member, names)) })),
    verdicts: verdicts.map((verdict) => ({ ...verdict, name: nameMember(verdict, "template", names) })),
  };
}

/** Describes the time to the first click, such as `median first click after 2 h 5 min (12)`. */
export function describeFirstClick({ first_click_ms, clicked }: Figures["tracked"]): string {
  if (first_click_ms === null) return "no first click yet";
  return `median first click after ${formatDuration(Math.round(first_click_ms / 1_000))} (${grouped(clicked)})`;
}

export type ResultsPage = Awaited<ReturnType<typeof readResults>>;
type ResultsRow = ResultsPage["rows"][number];

/** Writes a count, and its change against the previous interval. */
export function compareCounts(
  count: number,
  before: number | undefined,
): { readonly value: string; readonly change?: string } {
  const value = grouped(count);
  if (before === undefined) return { value };
  if (before === 0) return { value, change: "0 before" };
  const change = Math.round((count / before - 1) * 100);
  return { value, change: `${change < 0 ? "−" : "+"}${Math.abs(change)} %, ${grouped(before)} before` };
}

/** A rate that charts show: its title, the recipients that it is a share of, and how to read its counts from a row. */
interface Rate {
  readonly title: string;
  readonly base: string;
  readonly measure: keyof ResultsPage["verdicts"][number]["winner"];
  read(row: ResultsRow): {
    readonly rate: ResultsRow["reply_rate"];
    readonly hits: number;
    readonly trials: number;
  };
}

/** The rates of each variant. */
export const RATES: readonly Rate[] = [
  {
    title: "Clicked",
    base: "of recipients who granted tracking",
    measure: "clicked",
    read: ({ click_rate: rate, tracked }) => ({ rate, hits: tracked.clicked, trials: tracked.recipients }),
  },
  {
    title: "Replied",
    base: "of all who got it",
    measure: "replied",
    read: ({ reply_rate: rate, replied, sent }) => ({ rate, hits: replied, trials: sent }),
  },
];

/** Groups the rows by template, in the order of their names. Rows that are no variants form one group. */
export function groupRows({ rows, by }: ResultsPage): readonly (readonly ResultsRow[])[] {
  if (by !== "variant") return [rows];
  const byTemplate = [...Map.groupBy(rows, ({ template }) => template).values()];
  return byTemplate.map((group) => group.toSorted((one, other) => (one.names.join() < other.names.join() ? -1 : 1)));
}

/** Functions that read a figure from a row of results, by the title of the figure's column. */
type FiguresByHead = Readonly<Record<string, (row: ResultsRow) => number | null | undefined>>;

const MESSAGE_COUNTS: FiguresByHead = {
  sent: (row) => row.sent,
  failed: (row) => row.failed,
  "in doubt": (row) => row.in_doubt,
  replied: (row) => row.replied,
  "opted out": (row) => row.opted_out,
};

const LINK_COUNTS: FiguresByHead = {
  "clicks, total": (row) => row.clicks?.total,
  "clicks, unique": (row) => row.clicks?.unique,
  suspected: (row) => row.clicks?.suspected,
  bots: (row) => row.clicks?.bots,
};

const TRACKED_COUNTS: FiguresByHead = {
  "granted tracking": (row) => row.tracked.recipients,
  clicked: (row) => row.tracked.clicked,
  clicks: (row) => row.tracked.clicks,
  suspected: (row) => row.tracked.suspected,
};

const WORTH: FiguresByHead = {
  conversions: (row) => row.conversions.total,
  reversed: (row) => row.conversions.reversed,
};

const PREVIOUS_COUNTS: FiguresByHead = {
  "sent before": ({ previous }) => previous?.sent,
  "replied before": ({ previous }) => previous?.replied,
};

const SEEN_COUNTS: FiguresByHead = {
  seen: (row) => row.seen,
};

/** Title of the column whose figures are times in ms. */
export const FIRST_CLICK = "median first click";

/** Returns the columns of figures in the table of results. */
export function listFigures({ isTracked, previous_interval, total }: ResultsPage): FiguresByHead {
  return {
    ...MESSAGE_COUNTS,
    ...(total.seen > 0 ? SEEN_COUNTS : {}),
    ...(isTracked ? TRACKED_COUNTS : LINK_COUNTS),
    ...(total.conversions.total + total.conversions.reversed > 0 ? WORTH : {}),
    [FIRST_CLICK]: (row) => row.tracked.first_click_ms,
    ...(previous_interval === null ? {} : PREVIOUS_COUNTS),
  };
}
