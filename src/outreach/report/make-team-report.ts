import type { DataOf } from "../../../events/event-types-and-codec.ts";
import type { RunCounts } from "../../../events/outreach.ts";
import { countReachable } from "../../../projections/contact-outreach-by-campaign.ts";
import { isAfterChange, usedAt } from "../../../projections/quota.ts";
import { countContacted, type RunSummary, type Runs } from "../../../projections/runs.ts";
import { HOUR_MS, msOf } from "../../../projections/parse-log-times.ts";
import { judgeTemplates } from "../../history/results-verdict.ts";
import { sumVariants } from "../../history/results.ts";
import { nameRun, readRunCounts, type RunEndReason } from "../../history/run-list-and-page.ts";
import {
  explainCounts,
  wordReport,
  type ReportedRun,
  type ReportFigures,
} from "../../history/sentences/word-run-report-for-chat.ts";
import { findLast, type NewEvent } from "../../log/event-log.ts";
import { errorFields } from "../../platform/logger.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { Reachlog } from "../../privacy/log-context-types.ts";
import { momentIn, newestMoment } from "../quota-day.ts";
import { emptyTemplate, rulesForCampaign } from "../run-rules.ts";
import { readOpenItems } from "../attention/read-attention.ts";

/** Run that is about to end. `usd`: upper bound of its cost in US dollars; null if unknown, as for a dead process. */
export interface EndingRun extends RunCounts {
  readonly run_id: string;
  readonly reason: RunEndReason;
  readonly usd: number | null;
}

/**
 * Returns the events that request the report of a run's end; empty if none is wanted. Never rejects: if figures cannot
 * be read, the report lacks them, and the run still ends.
 */
export type ReportEnd = (run: EndingRun) => Promise<readonly NewEvent[]>;

/** Creates the function that requests reports of runs for the team chat, as the setting REPORT says. */
export function createRunReports(context: Reachlog): ReportEnd {
  const { chat, outreach } = context.config;
  if (!outreach.report.isAfterRun || chat === undefined) return () => Promise.resolve([]);
  return async (run) => {
    try {
      return [(await makeReport(context, run)).event];
    } catch (fault) {
      context.logger.error("the report of a run lacks most figures", { run_id: run.run_id, ...errorFields(fault) });
      const message = `A run has ended: ${explainCounts(run)}. More: ${toUrl(context, `/runs/${run.run_id}`)}`;
      return [toEvent(message, "info", { run_id: run.run_id })];
    }
  };
}

/**
 * Makes a report of outreach, with the event that requests its dispatch. `ending`: the run that ends with it; default:
 * the newest one. Throws ProjectionFolding while its figures are being folded.
 */
export async function makeReport(context: Reachlog, ending?: EndingRun) {
  const open = await readOpen(context);
  const { clicks: all, suspected } = context.projector.state("suspected").all;
  const runs = context.projector.state("runs");
  const [runId, run] = findReported(runs, ending) ?? [];
  const verdict = await judgeVariants(context, run?.campaign);
  const figures: ReportFigures = {
    run: runId === undefined || run === undefined ? undefined : toReported(context, runId, run, ending),
    quota: readQuota(context),
    earlier: sumEarlier(runs, runId),
    since: { ...runs.since, clicks: Math.max(0, all - suspected - runs.since.clicks) },
    verdict,
    overdueHours: findOverdue(context, run),
    open,
    openUrl: toUrl(context, "/attention"),
  };
  const severity = figures.overdueHours === undefined ? open[0]?.severity : "error";
  const message = wordReport(figures);
  const report = omitUndefined({ run_id: ending?.run_id, clicks: all - suspected });
  return { message, event: toEvent(message, severity ?? "info", report) };
}

type Notification = DataOf<"NotificationRequested">;

function toEvent(message: string, level: Notification["level"], report: NonNullable<Notification["report"]>): NewEvent {
  return { type: "NotificationRequested", data: { message, service: "reachlog report", level, report } };
}

function toUrl({ config }: Reachlog, path: string): string {
  return `${config.http.publicUrl}/console${path}`;
}

function findReported({ started }: Runs, ending: EndingRun | undefined) {
  return [...started].findLast(([id, { number }]) => (ending === undefined ? number !== null : id === ending.run_id));
}

function toReported(context: Reachlog, runId: string, run: RunSummary, ending: EndingRun | undefined): ReportedRun {
  const { projector } = context;
  const contacted = countContacted(run);
  return {
    ...(ending === undefined
      ? readRunCounts(projector.state("run"), runId, run)
      : { ...ending, skipped: ending.skipped - contacted, contacted }),
    name: nameRun(projector.state("runs"), runId),
    template: run.template,
    startedAt: run.started_at,
    end: ending?.reason ?? run.end?.reason,
    usd: ending?.usd ?? run.end?.usd ?? null,
    skips: run.skips,
    url: toUrl(context, `/runs/${runId}`),
  };
}

function readQuota(context: Reachlog): ReportFigures["quota"] {
  const { timezone, dailyLimit: limit } = context.config.outreach;
  const quota = context.projector.state("quota");
  const now = momentIn(timezone, newestMoment(context));
  return { used: usedAt(quota, now), limit, window: isAfterChange(quota, now) ? "last_24_hours" : "day" };
}

/** Sums up the runs that ended since the last report, except the newest one. Undefined if there were none. */
function sumEarlier({ started, since }: Runs, newest: string | undefined): ReportFigures["earlier"] {
  const ends = [...started].flatMap(([id, run]) => {
    const { number, end } = run;
    const isTold = number === null || id === newest || end === null || since.at === null || end.at <= since.at;
    return isTold ? [] : [{ ...end, contacted: countContacted(run) }];
  });
  if (ends.length === 0) return undefined;
  const sum = (name: keyof RunCounts | "contacted") => ends.reduce((all, end) => all + end[name], 0);
  return {
    runs: ends.length,
    sent: sum("sent"),
    skipped: sum("skipped"),
    contacted: sum("contacted"),
    failed: sum("failed"),
    in_doubt: sum("in_doubt"),
  };
}

/** Judges the variants of the message that the run's campaign sends now; undefined if it has one variant. */
async function judgeVariants(
  { projector, config }: Reachlog,
  campaign: string | undefined,
): Promise<ReportFigures["verdict"]> {
  const { template: own, dailyLimit, requireConsent } = config.outreach;
  const { state } = projector;
  const known = { template: own ?? emptyTemplate(config), requireConsent };
  const { template, ...rules } = rulesForCampaign(known, state("campaigns"), campaign);
  if (template.variants.length < 2) return undefined;
  const rows = await sumVariants(state("results"), { from: undefined, to: undefined });
  const limits = { dailyLimit, countPeopleLeft: () => countReachable(state("contacts"), rules) };
  return judgeTemplates(rows, () => limits).find((verdict) => verdict.template === template.id) ?? "none";
}

/**
 * Time after the expected hours since the last run until the next one counts as overdue, in ms, because schedulers and
 * restarts are not punctual.
 */
const START_LATE_MS = 2 * 3_600_000;

function findOverdue({ clock, config }: Reachlog, newest: RunSummary | undefined): ReportFigures["overdueHours"] {
  const { expectedHours } = config.outreach.report;
  if (expectedHours === undefined) return undefined;
  if (newest === undefined) return "ever";
  const ms = clock() - msOf(newest.started_at);
  return newest.end === null || ms < expectedHours * HOUR_MS + START_LATE_MS ? undefined : Math.floor(ms / HOUR_MS);
}

/** Reads the items that wait for an operator, and adds one if no X account is linked. */
async function readOpen({ projector, eventLog: { store }, clock, config }: Reachlog) {
  const { state, isFolded, position } = projector;
  const verified = await findLast(store, "LogVerified");
  const moment = { store, state, stateNow: state, hasNow: isFolded, position, now: clock(), asOf: undefined, verified };
  const settings = { timezone: config.outreach.timezone, recognisesMs: () => 0 };
  const open = await readOpenItems(moment, settings, undefined);
  const unlinked = { title: "No X account is authorized", severity: "critical" } as const;
  return projector.state("account").user === null ? [unlinked, ...open] : open;
}
