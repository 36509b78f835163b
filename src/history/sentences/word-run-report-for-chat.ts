import type { DataOf } from "../../../events/event-types-and-codec.ts";
import type { SkipReason } from "../../../events/outreach.ts";
import type { SinceReport } from "../../../projections/runs.ts";
import { DAY_CHARACTERS } from "../../../projections/parse-log-times.ts";
import { countInWords, formatUsd, grouped } from "../../platform/format-numbers-and-lists.ts";
import type { TemplateVerdict } from "../results-verdict.ts";
import { shortened } from "../../template/normalize-field.ts";
import { ENDS, type RunEndReason } from "../run-list-and-page.ts";
import { SKIPS } from "./outreach.ts";
import { sayCounts, type ReportedCounts } from "./short-outreach.ts";

/** Run that a report is about. */
export interface ReportedRun extends ReportedCounts {
  /** Name of the run, such as `Run 36`. */
  readonly name: string;
  readonly template: string | null;
  /** Start of the run, ISO 8601. */
  readonly startedAt: string;
  /** Why the run ended; undefined while it is in progress. */
  readonly end: RunEndReason | undefined;
  readonly usd: number | null;
  readonly skips: ReadonlyMap<SkipReason, number>;
  readonly url: string;
}

/** Figures of a report. It names no recipient. */
export interface ReportFigures {
  /** The newest run; undefined if there was none. */
  readonly run: ReportedRun | undefined;
  /**
   * Daily quota: `used` counts the messages that use it up now, of `limit` allowed in `window`, which is the calendar
   * day or the last 24 hours.
   */
  readonly quota: { readonly used: number; readonly limit: number; readonly window: "day" | "last_24_hours" };
  /** Number of earlier runs that ended since the last report, and the sums of their counts. */
  readonly earlier: (ReportedCounts & { readonly runs: number }) | undefined;
  /** Counts since the last report. `clicks` are those by people. */
  readonly since: SinceReport;
  /**
   * Verdict on the variants of the message; `none` if too few messages were sent for one. Undefined if the message has
   * one variant.
   */
  readonly verdict: TemplateVerdict | "none" | undefined;
  /** Hours since the last run began, if the next one is overdue; `ever` if there never was a run. */
  readonly overdueHours: number | "ever" | undefined;
  /** Items that wait for an operator, the most severe first. */
  readonly open: readonly { readonly title: string }[];
  readonly openUrl: string;
}

/**
 * Maximum length of a report's text, in characters: the chat message, with its level and sender before it, may have
 * 900.
 */
export const REPORT_CHARACTERS_MAX = 860;

/** Maximum length of a message's name in a report, in characters; a longer one is cut. */
const MESSAGE_CHARACTERS_MAX = 40;

/** Maximum number of reasons for skips, and of open items, that a report names. */
const NAMED_MAX = 3;

/**
 * Words a report for the team chat, in at most {@link REPORT_CHARACTERS_MAX} characters. Its first two lines hold the
 * result in about 40 words, because a reader of ten seconds reads no more; the details follow after a blank line.
 */
export function wordReport(figures: ReportFigures): string {
  const { run, open, openUrl, since } = figures;
  const result = [...sayOverdue(figures), ...sayRun(run), `${saySince(since)} ${sayOpen(open)}`, "", ""].join("\n");
  const details = new Map<string, string>();
  const add = (name: string, ...parts: readonly string[]) => parts.length > 0 && details.set(name, parts.join(" "));
  if (open.length > 0) add("openUrl", `What to do: ${openUrl}`);
  add("end", ...sayEnd(run));
  add("quota", sayQuota(figures));
  add("verdict", ...sayVerdict(figures));
  add("earlier", ...sayEarlier(figures));
  add("skipped", ...saySkips(run));
  add("refused", ...sayRefused(figures));
  if (run !== undefined) add("url", `The run: ${run.url}`);
  const word = () => result + [...details.values()].join("\n");
  for (const name of EXPENDABLE) if (word().length > REPORT_CHARACTERS_MAX) details.delete(name);
  return word().slice(0, REPORT_CHARACTERS_MAX);
}

/** Details that are left out of a report that would be too long, the least important first. */
const EXPENDABLE = ["skipped", "earlier", "refused", "url", "verdict", "quota", "openUrl"];

function sayOverdue({ run, overdueHours: hours }: ReportFigures): readonly string[] {
  if (run === undefined) return ["No run has begun yet."];
  return typeof hours === "number" ? [`No run has begun for ${countInWords(hours, "hour")}.`] : [];
}

/** Says the counts of a run, but not of recipients contacted earlier, because those are no result of this run. */
function sayRun(run: ReportedRun | undefined): readonly string[] {
  if (run === undefined) return [];
  const counts = explainCounts({ ...run, contacted: 0 });
  const named = `${run.name}, started ${run.startedAt.slice(0, DAY_CHARACTERS)}`;
  return [run.end === undefined ? `${named}, is in progress: ${counts} so far.` : `${named}: ${counts}.`];
}

function sayEnd(run: ReportedRun | undefined): readonly string[] {
  if (run === undefined) return [];
  const { template, end, usd } = run;
  return [
    ...(template === null ? [] : [`Message: ${shortened(template, MESSAGE_CHARACTERS_MAX)}.`]),
    ...(end === undefined ? [] : [`The run ended: ${ENDS[end]}.`]),
    ...(usd === null ? [] : [`X charges at most ${formatUsd(usd)}.`]),
  ];
}

/** Says the counts of a run as {@link sayCounts} does, and what "in doubt" means. */
export function explainCounts(counts: ReportedCounts): string {
  if (counts.in_doubt === 0) return sayCounts(counts);
  return `${sayCounts(counts)} (may have arrived)`;
}

function sayQuota({ quota: { used, limit, window } }: ReportFigures): string {
  const time = window === "day" ? "today" : "in the last 24 hours";
  return `Daily quota: ${grouped(used)} of ${countInWords(limit, "message")} used ${time}.`;
}

function saySkips(run: ReportedRun | undefined): readonly string[] {
  const skips = [...(run?.skips ?? [])]
    .filter(([reason]) => reason !== "already_contacted")
    .toSorted(([, one], [, other]) => other - one);
  const rest = skips.slice(NAMED_MAX).reduce((sum, [, count]) => sum + count, 0);
  const named = skips.slice(0, NAMED_MAX).map(([reason, count]) => `${SKIPS[reason]} (${grouped(count)})`);
  if (rest > 0) named.push(`others (${grouped(rest)})`);
  return [
    ...(named.length === 0 ? [] : [`Skipped: ${named.join(", ")}.`]),
    ...(run?.contacted ? [`Contacted earlier: ${grouped(run.contacted)}.`] : []),
  ];
}

function sayEarlier({ earlier }: ReportFigures): readonly string[] {
  if (earlier === undefined) return [];
  return [`Before it, ${countInWords(earlier.runs, "more run")}: ${explainCounts(earlier)}.`];
}

function saySince({ at, replies, opt_outs, clicks }: SinceReport): string {
  const counts = [
    countInWords(replies, "reply", "replies"),
    countInWords(opt_outs, "opt-out"),
    `${countInWords(clicks, "click")} by people`,
  ];
  const since = at === null ? "So far" : `Since ${at.slice(0, 16).replace("T", " ")} UTC (last report)`;
  return `${since}: ${counts.join(", ")}.`;
}

function sayRefused({ since: { refused } }: ReportFigures): readonly string[] {
  const reasons = [...refused].map(([reason, count]) => `${REFUSALS[reason]} (${grouped(count)})`);
  return reasons.length === 0 ? [] : [`Runs that could not start: ${reasons.join(", ")}.`];
}

const REFUSALS: Readonly<Record<DataOf<"RunRefused">["reason"], string>> = {
  daily_limit_reached: "the day's quota was used up",
  window_closed: "outside the sending hours",
  clock_skewed: "two clocks differ too much",
  unknown_campaign: "no campaign has the given name",
  campaign_ended: "the campaign has ended",
};

function sayVerdict({ verdict }: ReportFigures): readonly string[] {
  if (verdict === undefined) return [];
  if (verdict === "none") return ["Better variant of the message: not known yet."];
  const { outcome, title } = verdict;
  if (outcome === "better" || outcome === "split") return [`Variants of the message: ${title}.`];
  return [`Better variant of the message: ${outcome === "same" ? "none" : "not known yet"}. ${title}.`];
}

function sayOpen(open: ReportFigures["open"]): string {
  if (open.length === 0) return "Nothing needs attention.";
  const named = open.slice(0, NAMED_MAX).map(({ title }) => title);
  const rest = open.length - named.length;
  return `Needs attention: ${named.join("; ")}${rest === 0 ? "" : `; ${grouped(rest)} more`}.`;
}
