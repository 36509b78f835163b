import type { Results } from "../../projections/results.ts";
import {
  createResults,
  GROUPINGS,
  parseInterval,
  type Figures,
  type Grouping,
  type ResultRow,
  type ResultTable,
} from "../history/results.ts";
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
} from "../history/results-format.ts";
import { formatDuration } from "../platform/format-duration.ts";
import { resolveEnd } from "../projector/log-reader.ts";
import type { Place } from "../projector/parse-moment.ts";
import { Command, JSON_OPTION, Option, type MakeCommand } from "./shared/command.ts";
import { answer, printable, table } from "./shared/terminal.ts";
import { recordRead } from "./shared/log-session.ts";
import { describeMomentJson, toMomentJson } from "../projector/log-reader.ts";
import { AS_OF_OPTION, openAtMoment } from "./shared/moment.ts";

export const results: MakeCommand = (terminal) =>
  new Command("results")
    .summary("show the outcomes of messages, by variant, run, link and more")
    .description(
      `Of messages that were attempted in the interval: how many were sent, failed or
are in doubt, and how many recipients replied or opted out since, as far as
their messages were read: every run begins with that. A template without a name
(MESSAGE_TEMPLATE_NAME) is shown by its id.

Clicks are those that came in the interval. They count for a template or variant
whose messages alone hold the link; by run, source and basis only those of
recipients who granted tracking are known. Clicks that are suspected to be X
itself, and those of bots, are counted apart. Unique visitors are an estimate.

The interval is made of whole UTC days. With --from, the interval of the same
length before stands beside it.`,
    )
    .addOption(new Option("--by <what>", "what to group by").choices(GROUPINGS).default("variant" as const))
    .option(
      "--from <day>",
      "from this day (UTC) on, or from the day of this time on; default: the beginning of the log",
    )
    .option("--to <day>", "to the end of this day, or of the day of this time; default: now")
    .option(...AS_OF_OPTION)
    .option(...JSON_OPTION)
    .addOption(new Option("--csv", "answer with CSV").conflicts("json"))
    .examples("reachlog results --by variant --from 2026-11-01 --to 2026-11-30")
    .action(async ({ by, from, to, asOf: at, json, csv }) => {
      await using asked = await openAtMoment(terminal, at);
      const folded = await asked.fold("results", "visits");
      const end = resolveEnd({ moment: asked.moment, time: folded.time }, asked.store.logClock.now());
      const found = await createResults(folded.states, by, parseInterval(from, to, end));
      await recordRead(terminal, asked.store, { resource: "results", records: found.rows.length });
      const text = csv === true ? resultsAsCsv(by, found) : resultsAsText(by, found, folded, folded.states.results);
      return answer(terminal, json, { ...resultsAsJson(by, found), as_of: toMomentJson(folded) }, text);
    });

function resultsAsText(by: Grouping, answered: ResultTable, place: Place, states: Results): string {
  const { interval, previous, rows, omitted, total } = answered;
  const compared = previous === undefined ? "" : `; before: ${formatDays(previous)}`;
  const end = `(${formatDays(interval)}, UTC${compared}; ${describeMomentJson(place)})\n`;
  const merged = answered.mergedTo === null ? "" : `${describeMergedDays(answered)}\n`;
  if (rows.length === 0) return `no message was attempted, and no link of one was clicked ${end}${merged}`;
  const columns = isTrackedOnly(by) ? [...MESSAGE_COLUMNS, ...TRACKED_COLUMNS] : [...MESSAGE_COLUMNS, ...LINK_COLUMNS];
  const members = GROUP_MEMBERS[by];
  const before = previous === undefined ? [] : BEFORE_COLUMNS.filter(([name]) => columns.some(([one]) => one === name));
  const head = [
    ...members.map((member) => member.replace("_id", "")),
    ...columns.map(([name]) => name),
    ...before.map(([name]) => `${name} before`),
  ];
  const toRow = (names: readonly string[], { figures, previous: earlier }: Omit<ResultRow, "group">) => [
    ...names,
    ...columns.map(([, cell]) => cell(figures) ?? "-"),
    ...before.map(([, cell]) => (earlier === null ? "-" : (cell(earlier) ?? "-"))),
  ];
  const toNames = ({ group }: ResultRow) => members.map((member) => printable(nameMember(group, member, states)));
  const all = members.map((_, column) => (column === 0 ? "all" : ""));
  const lines = [...rows.map((row) => toRow(toNames(row), row)), toRow(all, total)];
  const left = omitted === 0 ? "" : `${omitted} earlier rows are left out: give an interval\n`;
  return `${table(head, lines)}${left}${merged}${isTrackedOnly(by) ? TRACKED_NOTE : CLICKS_NOTE}\n${end}`;
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

/** Those that stand beside the ones of the previous interval. */
const BEFORE_COLUMNS: readonly Column[] = [...MESSAGE_COLUMNS, ...LINK_COLUMNS, ...TRACKED_COLUMNS].filter(([name]) =>
  ["sent", "reply rate", "clicks (total)", "clicks (unique)", "click rate"].includes(name),
);
