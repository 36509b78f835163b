import type { DataOf, Folded } from "../events/event-types-and-codec.ts";
import type { RunEnd, SkipReason } from "../events/outreach.ts";
import type { Projection } from "./projection.ts";
import { DAY_CHARACTERS } from "./parse-log-times.ts";

/** Summary of one run or dry run. */
export interface RunSummary {
  /** Number of the run in the order in which runs began, from 1. Null for a dry run, which has none. */
  readonly number: number | null;
  /** Time at which the run started, ISO 8601. */
  readonly started_at: string;
  /** Position of the event that started the run, which names its caller. */
  readonly position: number;
  readonly dry_run: boolean;
  /** Campaign of the run; absent if it is `default`. */
  readonly campaign?: string;
  /** Name of the run's template, or its id; null if an older event names none. */
  readonly template: string | null;
  /** Maximum number of messages that the caller allowed; null if the caller set no limit. */
  readonly limit: number | null;
  /** Recipients that the run has skipped so far, or that the dry run would skip, by the reason. */
  skips: Map<SkipReason, number>;
  /** End of the run; null if none is recorded yet. */
  end: RunOutcome | null;
}

/**
 * Outcome of a run. For a dry run, `sent` and `skipped` say what it would have done. `skipped` does not count
 * recipients who were contacted earlier.
 */
export interface RunOutcome {
  /** Reason of the run's end; `abandoned` if its process died. */
  readonly reason: RunEnd | "abandoned";
  sent: number;
  readonly skipped: number;
  failed: number;
  /** Messages that are still in doubt. A message that is looked up later counts as sent or failed instead. */
  in_doubt: number;
  /** Time of the event that ended the run, ISO 8601. */
  readonly at: string;
  /** Position of the event that ended the run. */
  readonly position: number;
  /** Upper bound of the run's cost in US dollars; null if no event states it. */
  readonly usd: number | null;
}

/**
 * Figures from which the next report about outreach is made: events since the last report, and the total of clicks at
 * that time.
 */
export interface SinceReport {
  /** Time of the last report, ISO 8601; null if there was none. */
  readonly at: string | null;
  /** Number of all clicks by people up to the last report. */
  readonly clicks: number;
  replies: number;
  opt_outs: number;
  /** Refused starts of runs, by the reason. */
  readonly refused: Map<DataOf<"RunRefused">["reason"], number>;
}

/**
 * Numbers of runs and dry runs, and summaries of the newest {@link RUNS_MAX} of both together, by the run's id. The
 * oldest summary is first.
 */
export interface Runs {
  count: number;
  dry: number;
  started: Map<string, RunSummary>;
  since: SinceReport;
  /**
   * Upper bound of the cost outside of runs in US dollars, by UTC day: the network charges for each signal that it
   * sends, and for readings of the inbox that look for missed signals.
   */
  signals: Map<string, number>;
}

/** Maximum number of runs kept: enough for years with a few runs a day. They take about two megabytes. */
export const RUNS_MAX = 5_000;

export const runs: Projection<Runs> = {
  name: "runs",
  version: 7,
  types: [
    "RunStarted",
    "DirectMessageSent",
    "DirectMessageSkipped",
    "DirectMessageFailed",
    "RunFinished",
    "RunAbandoned",
    "DryRunFinished",
    "RunRefused",
    "DirectMessageReceived",
    "SignalsReceived",
    "InboxRead",
    "RecipientSuppressed",
    "NotificationRequested",
  ],
  initial: () => ({ count: 0, dry: 0, started: new Map(), since: sinceReport(null, 0), signals: new Map() }),
  evolve(state, event) {
    evolveRuns(state, event);
    noteForReport(state, event);
    return state;
  },
};

function sinceReport(at: string | null, clicks: number): SinceReport {
  return { at, clicks, replies: 0, opt_outs: 0, refused: new Map() };
}

/** Updates the counts that the next report of outreach states. */
function noteForReport(state: Runs, { type, data, time }: Folded): void {
  const { since, started } = state;
  switch (type) {
    case "DirectMessageSkipped":
      return countIn(started.get(data.run_id)?.skips, data.reason);
    case "RunRefused":
      return countIn(since.refused, data.reason);
    case "DirectMessageReceived":
      since.replies++;
      return;
    case "RecipientSuppressed":
      if (data.reason === "opt_out" || data.reason === "opt_out_page") since.opt_outs++;
      return;
    case "NotificationRequested":
      if (data.report?.clicks !== undefined) state.since = sinceReport(time, data.report.clicks);
      return;
    default:
  }
}

function countIn<Name>(counts: Map<Name, number> | undefined, name: Name): void {
  counts?.set(name, (counts.get(name) ?? 0) + 1);
}

/**
 * Finds a run by its number. Undefined if no run has the number, or if the run is so old that its summary was dropped.
 */
export function findNumberedRun({ started }: Runs, number: number): string | undefined {
  for (const [runId, run] of started) if (run.number === number) return runId;
  return undefined;
}

function evolveRuns(state: Runs, event: Folded): void {
  switch (event.type) {
    case "RunStarted":
      return start(state, event);
    case "DirectMessageSent":
      return settle(state, event.data.run_id, "sent");
    case "DirectMessageFailed":
      return settle(state, event.data.run_id, "failed");
    case "RunFinished": {
      const { reason, sent, failed, in_doubt, usage } = event.data;
      const skipped = event.data.skipped - countContacted(state.started.get(event.data.run_id));
      return end(state, event, { reason, sent, skipped, failed, in_doubt, usd: usage?.usd ?? null });
    }
    case "RunAbandoned": {
      const { sent, failed, in_doubt } = event.data;
      const skipped = event.data.skipped - countContacted(state.started.get(event.data.run_id));
      return end(state, event, { reason: "abandoned", sent, skipped, failed, in_doubt, usd: null });
    }
    case "DryRunFinished": {
      const { run_id, reason, would_send: sent, would_skip, skips = {}, usage } = event.data;
      const run = state.started.get(run_id);
      if (run !== undefined) run.skips = new Map(Object.entries(skips) as [SkipReason, number][]);
      const skipped = would_skip - countContacted(run);
      return end(state, event, { reason, sent, skipped, failed: 0, in_doubt: 0, usd: usage?.usd ?? null });
    }
    case "SignalsReceived":
    case "InboxRead": {
      const { usage } = event.data;
      const day = event.time.slice(0, DAY_CHARACTERS);
      if (usage !== undefined) state.signals.set(day, (state.signals.get(day) ?? 0) + usage.usd);
      return;
    }
    default:
  }
}

/** Returns how many recipients the run skipped because they were contacted earlier; 0 for an unknown run. */
export function countContacted(run: Pick<RunSummary, "skips"> | undefined): number {
  return run?.skips.get("already_contacted") ?? 0;
}

function start(state: Runs, { data, time, position }: Folded<"RunStarted">): void {
  const { run_id, dry_run, campaign, limit = null, rules } = data;
  if (state.started.has(run_id)) return;
  const number = dry_run ? null : ++state.count;
  if (dry_run) state.dry++;
  const template = rules?.template_name ?? rules?.template ?? null;
  state.started.set(run_id, {
    number,
    started_at: time,
    position,
    dry_run,
    ...(campaign === undefined ? {} : { campaign }),
    template,
    limit,
    skips: new Map(),
    end: null,
  });
  const [oldest] = state.started.keys();
  if (state.started.size > RUNS_MAX && oldest !== undefined) state.started.delete(oldest);
}

type Ending = Folded<"RunFinished" | "RunAbandoned" | "DryRunFinished">;

function end({ started }: Runs, { data, time, position }: Ending, outcome: Omit<RunOutcome, "at" | "position">): void {
  const run = started.get(data.run_id);
  if (run !== undefined) run.end ??= { ...outcome, at: time, position };
}

/**
 * Counts a message of an ended run as sent or failed. Until now it counted as in doubt, because its outcome was
 * unknown.
 */
function settle({ started }: Runs, runId: string, outcome: "sent" | "failed"): void {
  const ended = started.get(runId)?.end;
  if (ended == null || ended.in_doubt === 0) return;
  ended.in_doubt--;
  ended[outcome]++;
}
