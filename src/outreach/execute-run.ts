import { LeaseLost } from "eventstore-lite";
import type { RunEnd, Usage } from "../../events/outreach.ts";
import { isoTime } from "../platform/clock.ts";
import { STREAMS, type NewEvent } from "../log/event-log.ts";
import { record } from "../log/handle.ts";
import { errorFields } from "../platform/logger.ts";
import type { RunContext } from "./context.ts";
import { executeDryRun, type DryRun } from "./dry-run.ts";
import type { Meter } from "./meter.ts";
import { pause } from "./pacing.ts";
import { settleOpen, type Waiting } from "./reconcile.ts";
import { callsForAction } from "./run-end.ts";
import { runSendLoop } from "./send-loop.ts";

/** A finished run, as it is answered. */
export interface RunReport {
  readonly run_id: string;
  readonly reason: RunEnd;
  readonly sent: number;
  readonly skipped: number;
  readonly failed: number;
  readonly in_doubt: number;
  readonly started_at: string;
  readonly finished_at: string;
  /** What was asked of the network, and what that costs. */
  readonly usage: Usage;
  /** Only of a dry run; `estimate`: what the run that it rehearses would ask. */
  readonly preview?: DryRun & { readonly estimate: Usage };
}

/** Makes a run whose start is in the log, and appends its end. Throws when it must not go on: its lease is lost. */
export async function perform(started: RunContext, meter: Meter, dryRun: boolean): Promise<RunReport> {
  const timeLimit = new AbortController();
  const ended = new AbortController();
  void started.sleep(started.runMaxMs, ended.signal).then(() => timeLimit.abort("time_limit" satisfies RunEnd));
  const run = { ...started, signal: AbortSignal.any([started.signal, timeLimit.signal]) };
  try {
    return dryRun ? await performDry(run, meter) : await performReal(run, meter);
  } finally {
    ended.abort();
  }
}

async function performReal(run: RunContext, meter: Meter): Promise<RunReport> {
  const waiting: Waiting = { signal: run.signal, wait: (reason, until) => pause(run, reason, until) };
  let reason: RunEnd;
  try {
    await settleOpen(run, waiting);
    reason = await runSendLoop(run);
    if (callsForAction(run, reason)) await run.announce(`outreach stopped: ${reason}`, `run/${run.runId}`);
    await settleOpen(run, waiting);
  } catch (fault) {
    if (fault instanceof LeaseLost) throw fault;
    run.logger.error("a run ended by a fault", {
      run_id: run.runId,
      ...errorFields(fault),
    });
    reason = "fault";
  }
  const { started_at } = currentOf(run);
  const data = { run_id: run.runId, reason, ...countsOf(run), usage: meter.usage() };
  const finished_at = await appendEnd(run, { type: "RunFinished", data });
  return { ...data, started_at, finished_at };
}

async function performDry(run: RunContext, meter: Meter): Promise<RunReport> {
  const { started_at } = currentOf(run);
  const preview = await executeDryRun(run);
  const { reason } = preview;
  const usage = meter.usage();
  const data = {
    run_id: run.runId,
    reason,
    would_send: preview.would_send.length,
    would_skip: preview.would_skip.length,
    usage,
  };
  const finished_at = await appendEnd(run, { type: "DryRunFinished", data });
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  const estimate = meter.withSends(preview.would_send.length);
  return {
    run_id: run.runId,
    reason,
    ...counts,
    started_at,
    finished_at,
    usage,
    preview: { ...preview, estimate },
  };
}

/** Appends the run's end and answers when it was recorded. */
async function appendEnd(run: RunContext, newEvent: NewEvent): Promise<string> {
  const { metadata, lease } = run;
  await record(run, STREAMS.outreach, [newEvent], { metadata, lease });
  return run.projector.time ?? isoTime(run.clock());
}

function currentOf(run: RunContext) {
  const { current } = run.projector.state("run");
  if (current?.run_id !== run.runId) throw new Error(`run ${run.runId} is not the one in progress`);
  return current;
}

function countsOf(run: RunContext) {
  const { sent, skipped, failed, in_doubt } = currentOf(run);
  return { sent, skipped, failed, in_doubt };
}
