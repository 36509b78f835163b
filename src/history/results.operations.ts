import { Type, type Static, type TObject } from "@sinclair/typebox";
import { DEFAULT_CAMPAIGN } from "../../events/campaign.ts";
import { countReachableEach, type ReachRules } from "../../projections/contact-outreach-by-campaign.ts";
import type { Results } from "../../projections/message-outcomes-and-reactions.ts";
import { count, named, oneOf, orNull, text, time } from "../platform/common-schemas.ts";
import { countInWords, formatDuration, formatPercent, formatUsd } from "../platform/format-numbers-and-lists.ts";
import { operation } from "../platform/operation.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  MOMENT_CHARACTERS_MAX,
  resolveEnd,
  toMomentJson,
  type LogReader,
} from "../projector/operation-states-as-of.ts";
import { parseInterval } from "../projector/parse-day-range.ts";
import { createResults, sumVariants } from "./results.ts";
import { formatValues, GROUPINGS, resultFigures, resultGroup, worthFigures, type Figures } from "./results-figures.ts";
import { judgeTemplates, templateVerdict } from "./results-verdict.ts";
import {
  CLICKS_NOTE,
  describeMergedDays,
  formatDays,
  GROUP_MEMBERS,
  isTrackedOnly,
  namesIn,
  nameMember,
  resultsAsCsv,
  resultsAsJson,
  SEEN_NOTE,
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
  other: Type.Object(worthFigures),
  verdicts: Type.Array(templateVerdict),
  cost_usd: orNull(Type.Number({ minimum: 0, examples: [13.54] })),
  unique_standard_error: Type.Number({ examples: [0.023] }),
  ...asOf,
};

/** Reader of the results, with the daily limit: a verdict says how many days further messages would take. */
export interface ResultsReader extends LogReader {
  readonly config: {
    readonly outreach: { readonly dailyLimit: number; readonly requireConsent: ReachRules["requireConsent"] };
  };
}

const day = (description: string) =>
  Type.Optional(Type.String({ title: "day", maxLength: MOMENT_CHARACTERS_MAX, description, examples: ["2026-11-01"] }));

const input = {
  by: Type.Optional(
    Type.Union(oneOf(...GROUPINGS).anyOf, { title: "what", description: "What to group by; default: variant" }),
  ),
  from: day(
    "The first UTC day, or a time in it; the answer also has the previous interval of the same length. Default: the beginning of the log",
  ),
  to: day("The last UTC day, or a time in it. Default: now"),
  ...asOfInput,
};

/** Returns the results of the messages of an interval, with a verdict on their variants. */
export async function answerResults(
  { clock, at, config }: ResultsReader,
  { by = "variant", from, to, as_of }: Static<TObject<typeof input>>,
) {
  const found = await at(as_of, "conversions", "results", "runs", "visits");
  const asked = parseInterval(from, to, resolveEnd(found, clock()));
  const results = await createResults(found.states, by, asked);
  const cost = results.total.figures.cost_usd;
  const cost_usd = cost === null ? null : Number(cost);
  const judge = async () => {
    const { results: sums } = found.states;
    const rows = by === "variant" ? results.rows : await sumVariants(sums, asked);
    const limits = { dailyLimit: config.outreach.dailyLimit };
    // Recipients are not counted for a past moment: restoring them takes long, and the number would be out of date.
    if (Object.keys(found.moment).length > 0) return judgeTemplates(rows, () => limits);
    const { contacts, campaigns } = (await at(as_of, "campaigns", "contacts")).states;
    const toCampaign = (template: string | null = null) => campaignWith(sums, template);
    const toRules = (campaign: string | undefined): ReachRules => {
      const topic = campaigns.named.get(campaign ?? "")?.topic;
      return { campaign, topic, requireConsent: config.outreach.requireConsent };
    };
    // The recipients of all campaigns are counted in one pass, and only if no variant is better.
    const count = () => {
      const names = [...new Set(rows.map(({ group }) => toCampaign(group.template)))];
      const counts = countReachableEach(contacts, names.map(toRules));
      return new Map(names.map((name, at) => [name, counts[at]!]));
    };
    let left: ReturnType<typeof count> | undefined;
    return judgeTemplates(rows, (template) => {
      return { ...limits, countPeopleLeft: () => (left ??= count()).get(toCampaign(template))! };
    });
  };
  const verdicts = by === "variant" || by === "campaign" ? await judge() : [];
  return { ...resultsAsJson(by, results), verdicts, cost_usd, as_of: toMomentJson(found) };
}

/** Returns the campaign that last sent a template's messages, by the template's id; undefined for `default`. */
function campaignWith({ groups }: Results, template: string | null): string | undefined {
  const campaign = groups.findLast((group) => group.template === (template ?? ""))?.campaign;
  return campaign === DEFAULT_CAMPAIGN ? undefined : campaign;
}

export const showResults = operation({
  name: "results",
  id: "getResults",
  tag: "outreach",
  access: ["session", "read"],
  summary: "Show the outcomes of messages, by variant, run, link and more.",
  description: `Outcomes until now of the messages attempted in the interval, and the clicks on their links in it. ${CLICKS_NOTE} They count for a template or variant if only its messages hold the link. \`tracked\`: clicks of recipients who granted tracking, on their own links; by run, source and basis no other clicks are known. Clicks up to \`clicks_merged_to\` are no longer told apart by day: they count only in an answer without \`from\` that ends later. A template without a name (MESSAGE_TEMPLATE_NAME) is shown by its id. \`verdicts\`, only by variant and campaign: for each template, whether a variant is better, and how many more messages would decide. \`cost_usd\`: the most that the network charged for the runs, dry runs and signals of the interval, look-ups and replies included; in a row, the part of its messages. \`conversions\` occurred in the interval; those of no row, and such costs, are in \`other\`, so that all rows and \`other\` sum to \`total\`. \`seen\`, with X_APP_BEARER_TOKEN: sent messages that X signalled as read; no receipt means unknown, never unread.`,
  personalRead: "results",
  input,
  output,
  run: answerResults,
  discloses: ({ rows }) => ({ records: rows.length }),
  csv: resultsAsCsv,
  table({ by, previous_interval, rows, total }) {
    if (rows.length === 0) return undefined;
    const seen = total.seen > 0 ? SEEN_COLUMNS : [];
    const worth = total.conversions.total + total.conversions.reversed === 0 ? [] : WORTH_COLUMNS;
    const counted = [...seen, ...(isTrackedOnly(by) ? TRACKED_COLUMNS : LINK_COLUMNS), ...worth];
    const columns = [...MESSAGE_COLUMNS, ...counted];
    const members = GROUP_MEMBERS[by];
    const before = previous_interval === null ? [] : columns.filter(([name]) => COMPARED.has(name));
    const toCells = (names: readonly string[], figures: Row) => [
      ...names,
      ...columns.map(([, cell]) => cell(figures) ?? "-"),
      ...before.map(([, cell]) => (figures.previous === null ? "-" : (cell(figures.previous) ?? "-"))),
    ];
    const known = namesIn(rows);
    const toNames = (row: Static<typeof resultRow>) => members.map((member) => nameMember(row, member, known));
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
  text({
    by,
    interval: asked,
    previous_interval,
    rows,
    omitted,
    clicks_merged_to: mergedTo,
    verdicts,
    as_of,
    ...more
  }) {
    const compared = previous_interval === null ? "" : `; before: ${describeDays(previous_interval)}`;
    const end = `(${describeDays(asked)}, UTC${compared}; ${describeMomentJson(as_of)})\n`;
    const merged = mergedTo === null ? "" : `${describeMergedDays({ mergedTo })}\n`;
    if (rows.length === 0) return `no message was attempted, and no link of one was clicked ${end}${merged}`;
    const left = omitted === 0 ? "" : `${omitted} earlier rows are left out: give an interval\n`;
    const known = namesIn(rows);
    const said = verdicts.map(({ title, explanation, sent, ...group }) => {
      const line = `${nameMember(group, "template", known)}, ${countInWords(sent, "message")}: ${title}. ${explanation}`;
      // White space becomes one space, because a line break in a template's name would begin another line.
      return `${line.replaceAll(/\s+/g, " ")}\n`;
    });
    return `${left}${merged}${said.join("")}${describeCost(more)}${isTrackedOnly(by) ? TRACKED_NOTE : CLICKS_NOTE}\n${more.total.seen > 0 ? `${SEEN_NOTE}\n` : ""}${end}`;
  },
  examples: ["--by variant --from 2026-11-01 --to 2026-11-30"],
});

/**
 * Describes on one line what runs, dry runs and the network's signals cost in US dollars; empty if no cost is recorded.
 */
function describeCost({
  cost_usd: cost,
  total: { sent },
}: {
  cost_usd: number | null;
  total: { sent: number };
}): string {
  if (cost === null) return "";
  return `Cost: at most ${formatUsd(cost)}${sent === 0 ? "" : `, ${formatUsd(cost / sent, 3)} per message`}.\n`;
}

type Row = Figures & Static<typeof previous>;

export function describeDays(days: Static<typeof interval>): string {
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

const SEEN_COLUMNS: readonly Column[] = [
  ["seen", ({ seen }) => seen],
  ["seen rate", ({ seen_rate }) => seen_rate && formatPercent(seen_rate.rate)],
];

const FIRST_CLICK: Column = [
  "median first click",
  ({ tracked }) =>
    tracked.first_click_ms === null
      ? null
      : `${formatDuration(Math.round(tracked.first_click_ms / 1_000))} (${tracked.clicked} of ${tracked.recipients})`,
];

/** Columns of conversions and costs, shown once there is a conversion. */
const WORTH_COLUMNS: readonly Column[] = [
  ["conversions", ({ conversions }) => conversions.total],
  ["reversed", ({ conversions }) => conversions.reversed],
  ["value", ({ conversions }) => formatValues(conversions.values, "value")],
  ["value per message", ({ conversions }) => formatValues(conversions.values, "per_message")],
  ["converted", ({ tracked }) => tracked.converted],
  ["conversion rate", ({ conversion_rate }) => conversion_rate && formatPercent(conversion_rate.rate)],
  ["cost (USD)", ({ cost_usd }) => cost_usd],
  ["cost per conversion", ({ cost_per_conversion_usd }) => cost_per_conversion_usd],
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

/** Columns of results that are shown next to their values in the previous interval. */
const COMPARED: ReadonlySet<string> = new Set([
  "sent",
  "reply rate",
  "clicks (total)",
  "clicks (unique)",
  "click rate",
]);
