import type { Folded } from "../events/catalog.ts";
import type { RunEnd } from "../events/outreach.ts";
import type { Projection } from "./projection.ts";

/** One run, or dry run. */
export interface RunSummary {
  /** Number of the run in the order in which all runs began, from 1. */
  readonly number: number;
  /** ISO 8601. */
  readonly started_at: string;
  /** Position of the event that started it, which names the caller. */
  readonly position: number;
  readonly dry_run: boolean;
  /** Name of its template, or its id; null if an older event does not say. */
  readonly template: string | null;
  /** Null if no end is recorded yet. */
  end: RunOutcome | null;
}

/** For a dry run, `sent` and `skipped` are what it would have sent and skipped. */
export interface RunOutcome {
  /** `abandoned` if its process died. */
  readonly reason: RunEnd | "abandoned";
  readonly sent: number;
  readonly skipped: number;
  readonly failed: number;
}

/** The number of all runs, including dry runs, and the newest of them by id, the oldest first. */
export interface Runs {
  count: number;
  started: Map<string, RunSummary>;
}

/** Maximum number of runs kept: years of a few a day, in a megabyte and a half. */
export const RUNS_MAX = 5_000;

export const runs: Projection<Runs> = {
  name: "runs",
  version: 2,
  types: ["RunStarted", "RunFinished", "RunAbandoned", "DryRunFinished"],
  initial: () => ({ count: 0, started: new Map() }),
  evolve(state, event) {
    evolveRuns(state, event);
    return state;
  },
};

function evolveRuns(state: Runs, event: Folded): void {
  switch (event.type) {
    case "RunStarted":
      return start(state, event);
    case "RunFinished": {
      const { run_id, reason, sent, skipped, failed } = event.data;
      return end(state, run_id, { reason, sent, skipped, failed });
    }
    case "RunAbandoned": {
      const { run_id, sent, skipped, failed } = event.data;
      return end(state, run_id, { reason: "abandoned", sent, skipped, failed });
    }
    case "DryRunFinished": {
      const { run_id, reason, would_send, would_skip } = event.data;
      return end(state, run_id, { reason, sent: would_send, skipped: would_skip, failed: 0 });
    }
    default:
  }
}

function start(state: Runs, { data, time, position }: Folded<"RunStarted">): void {
  const { run_id, dry_run, rules } = data;
  if (state.started.has(run_id)) return;
  const number = ++state.count;
  const template = rules?.template_name ?? rules?.template ?? null;
  state.started.set(run_id, { number, started_at: time, position, dry_run, template, end: null });
  const [oldest] = state.started.keys();
  if (state.started.size > RUNS_MAX && oldest !== undefined) state.started.delete(oldest);
}

function end({ started }: Runs, runId: string, outcome: RunOutcome): void {
  const run = started.get(runId);
  if (run !== undefined) run.end ??= outcome;
}
