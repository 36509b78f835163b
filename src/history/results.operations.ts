import { Type, type Static } from "@sinclair/typebox";
import { count, named, oneOf, orNull, text, time } from "../platform/common-schemas.ts";
import { formatDuration } from "../platform/format-duration.ts";
import { operation } from "../platform/operation.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  MOMENT_CHARACTERS_MAX,
  resolveEnd,
  toMomentJson,
  type LogReader,
} from "../projector/log-reader.ts";
import { createResults, GROUPINGS, parseInterval, resultFigures, resultGroup, type Figures } from "./results.ts";
import {
  CLICKS_NOTE,
  describeMergedDays,
  formatDays,
  formatPercent,
  GROUP_MEMBERS,
  isTrackedOnly,
  nameMember,
  resultsAsCsv,
  resultsAsJson,
  TRACKED_NOTE,
} from "./results-format.ts";

const previous = Type.Object({ previous: orNull(named("ResultFigures", resultFigures)) });

const resultRow = Type.Composite([resultGroup, resultFigures, previous]);

const interval = Type.Object({ from: orNull(time), to: orNull(time) });

const output = {
  by: oneOf(...GROUPINGS),
  interval,
  previous_interval: orNull(interval),
  rows: Type.Array(resultRow),
  omitted: count,
  clicks_merged_to: orNull(text("2026-11-20")),
  total: Type.Composite([resultFigures, previous]),
  unique_standard_error: Type.Number({ examples: [0.023] }),
  ...asOf,
};

const day = (description: string) =>
  Type.Optional(Type.String({ title: "day", maxLength: MOMENT_CHARACTERS_MAX, description, examples: ["2026-11-01"] }));

export const showResults = operation({
  name: "results",
  id: "getResults",
  tag: "outreach",
  access: ["session", "read"],
  summary: "Show the outcomes of messages, by variant, run, link and more.",
  description: `Outcomes until now of the messages attempted in the interval, and the clicks on their links in it. ${CLICKS_NOTE} They count for a template or variant whose messages alone hold the link. \`tracked\`: of recipients who granted tracking, on links of their own; by run, source and basis no other clicks are known. Clicks up to \`clicks_merged_to\` are no longer told apart by day: they count only in an answer without \`from\` that ends later. A template without a name (MESSAGE_TEMPLATE_NAME) is shown by its id.`,
  personalRead: "results",
  input: {
    by: Type.Optional(
      Type.Union(oneOf(...GROUPINGS).anyOf, { title: "what", description: "What to group by; default: variant" }),
    ),
    from: day(
      "The first UTC day, or a time in it; the interval of the same length before stands beside it. Default: the beginning of the log",
    ),
    to: day("The last UTC day, or a time in it. Default: now"),
    ...asOfInput,
  },
  output,
  async run({ clock, at }: LogReader, { by = "variant", from, to, as_of }) {
    const found = await at(as_of, "results", "visits");
    const asked = parseInterval(from, to, resolveEnd(found, clock()));
    const results = await createResults(found.states, by, asked);
    return { ...resultsAsJson(by, results), as_of: toMomentJson(found) };
  },
  discloses: ({ rows }) => ({ records: rows.length }),
  csv: resultsAsCsv,
  table({ by, previous_interval, rows, total }) {
    if (rows.length === 0) return undefined;
    const columns = [...MESSAGE_COLUMNS, ...(isTrackedOnly(by) ? TRACKED_COLUMNS : LINK_COLUMNS)];
    const members = GROUP_MEMBERS[by];
    const before = previous_interval === null ? [] : columns.filter(([name]) => COMPARED.has(name));
    const toCells = (names: readonly string[], figures: Row) => [
      ...names,
      ...columns.map(([, cell]) => cell(figures) ?? "-"),
      ...before.map(([, cell]) => (figures.previous === null ? "-" : (cell(figures.previous) ?? "-"))),
    ];
    const pairs = rows.flatMap(({ template, template_name: name }) => (template && name ? [[template, name]] : []));
    const templates = new Map(pairs as [string, string][]);
    const toNames = (row: Static<typeof resultRow>) => members.map((member) => nameMember(row, member, { templates }));
    const all = members.map((_, column) => (column === 0 ? "all" : ""));
    return {
      head: [
        ...members.map((member) => member.replace("_id", "")),
        ...columns.map(([name]) => name),
        ...before.map(([name]) => `${name} before`),
      ],
      rows: [...rows.map((row) => toCells(toNames(row), row)), toCells(all, total)],
    };
  },
  text({ by, interval: asked, previous_interval, rows, omitted, clicks_merged_to: mergedTo, as_of }) {
    const compared = previous_interval === null ? "" : `; before: ${describeDays(previous_interval)}`;
    const end = `(${describeDays(asked)}, UTC${compared}; ${describeMomentJson(as_of)})\n`;
    const merged = mergedTo === null ? "" : `${describeMergedDays({ mergedTo })}\n`;
    if (rows.length === 0) return `no message was attempted, and no link of one was clicked ${end}${merged}`;
    const left = omitted === 0 ? "" : `${omitted} earlier rows are left out: give an interval\n`;
    return `${left}${merged}${isTrackedOnly(by) ? TRACKED_NOTE : CLICKS_NOTE}\n${end}`;
  },
  examples: ["--by variant --from 2026-11-01 --to 2026-11-30"],
});

type Row = Figures & Static<typeof previous>;

function describeDays(days: Static<typeof interval>): string {
  const toMs = (at: string | null) => (at === null ? undefined : Date.parse(at));
  return formatDays({ from: toMs(days.from), to: toMs(days.to) });
}

type Column = readonly [name: string, cell: (figures: Figures) => string | number | null];

const MESSAGE_COLUMNS: readonly Column[] = [
  ["attempted", ({ attempted }) => attempted],
  ["sent", ({ sent }) => sent],
  ["failed", ({ failed }) => failed],
  ["in doubt", ({ in_doubt }) => in_doubt],
  ["replied", ({ replied }) => replied],
  ["opted out", ({ opted_out }) => opted_out],
  ["reply rate", ({ reply_rate }) => reply_rate && formatPercent(reply_rate.rate)],
  ["95 % interval", ({ reply_rate: of }) => of && `${formatPercent(of.low)} to ${formatPercent(of.high)}`],
];

const FIRST_CLICK: Column = [
  "median first click",
  ({ tracked }) =>
    tracked.first_click_ms === null
      ? null
      : `${formatDuration(Math.round(tracked.first_click_ms / 1_000))} (${tracked.clicked} of ${tracked.recipients})`,
];

const LINK_COLUMNS: readonly Column[] = [
  ["clicks (total)", ({ clicks }) => clicks && clicks.total],
  ["clicks (unique)", ({ clicks }) => clicks && clicks.unique],
  ["suspected", ({ clicks }) => clicks && clicks.suspected],
  ["bots", ({ clicks }) => clicks && clicks.bots],
  FIRST_CLICK,
];

const TRACKED_COLUMNS: readonly Column[] = [
  ["granted tracking", ({ tracked }) => tracked.recipients],
  ["clicked", ({ tracked }) => tracked.clicked],
  ["click rate", ({ click_rate }) => click_rate && formatPercent(click_rate.rate)],
  ["clicks", ({ tracked }) => tracked.clicks],
  ["suspected", ({ tracked }) => tracked.suspected],
  FIRST_CLICK,
];

/** Columns that are shown next to those of the previous interval. */
const COMPARED: ReadonlySet<string> = new Set([
  "sent",
  "reply rate",
  "clicks (total)",
  "clicks (unique)",
  "click rate",
]);
