import { csvHead, csvRecord } from "../log/export-formats/csv.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { formatPercent } from "../platform/format-numbers-and-lists.ts";
import { escapeControls } from "../platform/escape-control-characters.ts";
import { DAY_MS, toDay } from "../../projections/parse-log-times.ts";
import { formatTemplate, type TemplateNames } from "../../projections/message-outcomes-and-reactions.ts";
import { VISITORS_ERROR } from "../../projections/estimate-visitors.ts";
import { formatValues, type Figures, type Grouping, type ResultGroup, type ResultRate } from "./results-figures.ts";
import type { Interval } from "../projector/parse-day-range.ts";
import type { ResultTable } from "./results.ts";

/** Note on how clicks are counted, added to every answer that people read. */
export const CLICKS_NOTE =
  "Clicks are counted by UTC day. Total: without those of bots and those suspected to be X's own. Unique: different " +
  `visitors, each once for a link and day, an estimate with a standard error of ${formatPercent(VISITORS_ERROR)}; clicks ` +
  "without address and user agent, and anonymous ones, count only in the total.";

/** Note that X tells of some read messages only, added to every answer that shows how many messages were read. */
export const SEEN_NOTE = "Seen: at least so many, by the signals of X. No receipt means unknown, never unread.";

/** Describes the days whose clicks are kept only as a sum; an empty string if there are none. */
export function describeMergedDays({ mergedTo }: { readonly mergedTo: string | null }): string {
  if (mergedTo === null) return "";
  return `Clicks up to ${mergedTo} are no longer told apart by day: they count only in an answer without a first day that ends later.`;
}

export const TRACKED_NOTE = "Only clicks of recipients who granted tracking, on their own links, are counted.";

/**
 * True if different groups of this grouping send the same links. A click then shows its group only if the recipient
 * permits tracking, so only such clicks are counted.
 */
export function isTrackedOnly(by: Grouping): boolean {
  return by === "run" || by === "source" || by === "basis";
}

/** Members of a row that people read as its name, for each grouping. */
export const GROUP_MEMBERS: Readonly<Record<Grouping, readonly (keyof ResultGroup)[]>> = {
  template: ["template"],
  variant: ["template", "variant"],
  run: ["run_id"],
  campaign: ["campaign"],
  day: ["day"],
  source: ["source"],
  basis: ["basis"],
  link: ["link"],
};

/** Returns a member of a row as text for people; a template is shown by its name. */
export function nameMember(group: ResultGroup, member: keyof ResultGroup, results: TemplateNames): string {
  const name = group[member] ?? "unknown";
  return member === "template" ? formatTemplate(results, name) : name;
}

/** Collects the names of all templates in these rows of results. */
export function namesIn(rows: readonly ResultGroup[]): TemplateNames {
  const pairs = rows.flatMap(({ template, template_name: name }) =>
    template && name ? [[template, name] as const] : [],
  );
  return { templates: new Map(pairs) };
}

/** Converts a table of results to the JSON of the API. */
export function resultsAsJson(
  by: Grouping,
  { interval, previous, rows, omitted, mergedTo, total, other }: ResultTable,
) {
  return {
    by,
    interval: intervalAsJson(interval),
    previous_interval: previous === undefined ? null : intervalAsJson(previous),
    rows: rows.map(({ group, figures, previous: before }) => ({ ...group, ...figures, previous: before })),
    omitted,
    clicks_merged_to: mergedTo,
    total: { ...total.figures, previous: total.previous },
    other,
    unique_standard_error: VISITORS_ERROR,
  };
}

/** Formats the first and last UTC day of an interval. */
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
  // Line breaks and terminal control characters are escaped, so that each row stays on one line.
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
  seen: ({ seen }) => seen,
  seen_rate: ({ seen_rate }) => rateCell(seen_rate, "rate"),
  tracked_converted: ({ tracked }) => tracked.converted,
  conversion_rate: ({ conversion_rate }) => rateCell(conversion_rate, "rate"),
  conversion_rate_low: ({ conversion_rate }) => rateCell(conversion_rate, "low"),
  conversion_rate_high: ({ conversion_rate }) => rateCell(conversion_rate, "high"),
  conversions: ({ conversions }) => conversions.total,
  conversions_reversed: ({ conversions }) => conversions.reversed,
  conversion_value: ({ conversions }) => formatValues(conversions.values, "value"),
  value_per_message: ({ conversions }) => formatValues(conversions.values, "per_message"),
  cost_usd: ({ cost_usd }) => cost_usd,
  cost_per_conversion_usd: ({ cost_per_conversion_usd }) => cost_per_conversion_usd,
};
