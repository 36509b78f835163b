import { csvHead, csvRecord } from "../log/export-formats/csv.ts";
import { isoTime } from "../platform/clock.ts";
import { escapeControls } from "../platform/escape-controls.ts";
import { DAY_MS, toDay } from "../../projections/time.ts";
import { formatTemplate, type Results } from "../../projections/results.ts";
import { VISITORS_ERROR } from "../../projections/visitors.ts";
import type { Figures, Grouping, Interval, ResultRate, ResultGroup, ResultTable } from "./results.ts";

/** The note on click figures in every answer to people. */
export const CLICKS_NOTE =
  "Clicks are counted by UTC day. Total: not by bots, and not suspected to be X itself. Unique: different visitors, each once " +
  `a link and day, an estimate with a standard error of ${formatPercent(VISITORS_ERROR)}; clicks without address and ` +
  "user agent, and anonymous ones, are in the total alone.";

/** Returns an empty string if all days of the answer are told apart. */
export function describeMergedDays({ mergedTo }: Pick<ResultTable, "mergedTo">): string {
  if (mergedTo === null) return "";
  return `Clicks up to ${mergedTo} are no longer told apart by day: they count only in an answer without a first day that ends later.`;
}

export const TRACKED_NOTE = "Clicks are those of recipients who granted tracking, on links of their own.";

/** True if no link tells the messages of these groups apart. */
export function isTrackedOnly(by: Grouping): boolean {
  return by === "run" || by === "source" || by === "basis";
}

/** The members of a row that name it to people, for each grouping. */
export const GROUP_MEMBERS: Readonly<Record<Grouping, readonly (keyof ResultGroup)[]>> = {
  template: ["template"],
  variant: ["template", "variant"],
  run: ["run_id"],
  day: ["day"],
  source: ["source"],
  basis: ["basis"],
  link: ["link"],
};

/** Returns the text of a row's member; for a template its name. */
export function nameMember(group: ResultGroup, member: keyof ResultGroup, results: Pick<Results, "templates">): string {
  const name = group[member] ?? "unknown";
  return member === "template" ? formatTemplate(results, name) : name;
}

/** A table of results as programs get it. */
export function resultsAsJson(by: Grouping, { interval, previous, rows, omitted, mergedTo, total }: ResultTable) {
  return {
    by,
    interval: intervalAsJson(interval),
    previous_interval: previous === undefined ? null : intervalAsJson(previous),
    rows: rows.map(({ group, figures, previous: before }) => ({ ...group, ...figures, previous: before })),
    omitted,
    clicks_merged_to: mergedTo,
    total: { ...total.figures, previous: total.previous },
    unique_standard_error: VISITORS_ERROR,
  };
}

/** `rate` is from 0 to 1. */
export function formatPercent(rate: number): string {
  return `${(rate * 100).toFixed(1)} %`;
}

/** Formats the interval's UTC days, including the last. */
export function formatDays({ from, to }: Interval): string {
  return `${from === undefined ? "the beginning" : toDay(from)} to ${to === undefined ? "now" : toDay(to - DAY_MS)}`;
}

function intervalAsJson({ from, to }: Interval) {
  return { from: from === undefined ? null : isoTime(from), to: to === undefined ? null : isoTime(to) };
}

/** Formats the rows as CSV (RFC 4180), without the total. */
export function resultsAsCsv({ by, rows, clicks_merged_to }: ReturnType<typeof resultsAsJson>): string {
  const members = GROUP_MEMBERS[by].flatMap((member) =>
    member === "template" ? ([member, "template_name"] as const) : [member],
  );
  const names = Object.keys(CELLS);
  const head = [...members, ...names, ...names.map((name) => `previous_${name}`), "clicks_merged_to"];
  const lines = rows.map((row) => [
    ...members.map((member) => row[member] ?? ""),
    ...Object.values(CELLS).map((cell) => cell(row)),
    ...Object.values(CELLS).map((cell) => (row.previous === null ? null : cell(row.previous))),
    clicks_merged_to,
  ]);
  // Each row stays on one line, without characters that steer a terminal.
  const toCell = (value: string | number | null): string => escapeControls(String(value ?? "").replaceAll(/\s+/g, " "));
  return csvHead(head) + lines.map((line) => csvRecord(line.map(toCell))).join("");
}

const rateCell = (rate: ResultRate | null, bound: keyof ResultRate): string | null =>
  rate === null ? null : rate[bound].toFixed(4);

const CELLS: Readonly<Record<string, (figures: Figures) => string | number | null>> = {
  attempted: ({ attempted }) => attempted,
  sent: ({ sent }) => sent,
  failed: ({ failed }) => failed,
  in_doubt: ({ in_doubt }) => in_doubt,
  replied: ({ replied }) => replied,
  opted_out: ({ opted_out }) => opted_out,
  reply_rate: ({ reply_rate }) => rateCell(reply_rate, "rate"),
  reply_rate_low: ({ reply_rate }) => rateCell(reply_rate, "low"),
  reply_rate_high: ({ reply_rate }) => rateCell(reply_rate, "high"),
  clicks_total: ({ clicks }) => clicks && clicks.total,
  clicks_unique: ({ clicks }) => clicks && clicks.unique,
  clicks_suspected: ({ clicks }) => clicks && clicks.suspected,
  clicks_anonymous: ({ clicks }) => clicks && clicks.anonymous,
  clicks_bots: ({ clicks }) => clicks && clicks.bots,
  clicks_probes: ({ clicks }) => clicks && clicks.probes,
  tracked_recipients: ({ tracked }) => tracked.recipients,
  tracked_clicked: ({ tracked }) => tracked.clicked,
  tracked_clicks: ({ tracked }) => tracked.clicks,
  tracked_suspected: ({ tracked }) => tracked.suspected,
  tracked_first_click_ms: ({ tracked }) => tracked.first_click_ms,
};
