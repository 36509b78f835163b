import { LeaseLost, StoreClosed, VersionConflict } from "eventstore-lite";
import type { RunEnd } from "../../events/outreach.ts";
import { usedOn } from "../../projections/quota.ts";
import { isoTime } from "../clock.ts";
import { OWN_CAUSE, STREAMS, type Cause, type Fact } from "../journal.ts";
import { faultFields } from "../log.ts";
import { catchUp, outreachState, today, type OutreachContext, type RunContext } from "./context.ts";
import { decideStart } from "./decide.ts";
import { performDryRun, type DryRun } from "./dry-run.ts";
import { takeRunLease, type RunLease } from "./lease.ts";
import { reconcile } from "./reconcile.ts";
import { performRun } from "./run.ts";

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
  /** Only of a dry run. */
  readonly preview?: DryRun;
}

/** `done` resolves when the run has ended; undefined when it died of a fault, which is logged. */
export type Triggered =
  | {
      readonly kind: "started";
      readonly run_id: string;
      readonly done: Promise<RunReport | undefined>;
    }
  | { readonly kind: "running"; readonly run_id: string | undefined }
  | { readonly kind: "not_authorized" }
  | { readonly kind: "limit_reached" };

export interface TriggerRequest {
  readonly dryRun: boolean;
  readonly cause: Cause;
  /** Makes the trigger idempotent: a repeat answers with the run that the first one started. A dry run needs none. */
  readonly key?: string;
}

export interface Runner extends AsyncDisposable {
  trigger(request: TriggerRequest): Promise<Triggered>;
  /**
   * Closes the run of a dead process, after settling what it left in doubt; tried until the log takes it or the runner
   * stops. `steal`: its lease needs no waiting for.
   */
  recover(options: { readonly steal: boolean }): Promise<void>;
}

/** Ends that an operator has to do something about. */
const CALLS_FOR_ACTION: ReadonlySet<RunEnd> = new Set([
  "credits_depleted",
  "usage_capped",
  "sender_restricted",
  "missing_scope",
]);

/** How often the closing of a dead run is tried: its lease may last for 30 s, a full disk for hours. */
const RECOVERY_RETRY_MS = 5_000;

/** Whoever holds the lease starts a run within a moment; how often and how long its start is waited for. */
const START_POLL_MS = 50;
const START_POLLS = 40;

export function createRunner(context: OutreachContext): Runner {
  const works = createWorks(context);

  const recoverUnder = (lease: RunLease): Promise<void> =>
    works.start("the recovery of a run", lease, async () => {
      await settleOpen(context, lease);
      if (!lease.signal.aborted) await abandon(context, lease);
    });

  const recover = async (steal: boolean): Promise<void> => {
    const { current, open } = context.projector.state("run");
    if (current === null && open.size === 0) return;
    const lease = await takeRunLease(context, current?.run_id ?? context.makeId(), steal);
    if (lease !== undefined) await recoverUnder(lease);
  };

  /** Closes a run that no process performs any more, however long the log refuses it: nobody else would unasked. */
  const recoverUntilClosed = async (steal: boolean): Promise<void> => {
    const dead = context.projector.state("run").current?.run_id;
    for (;;) {
      try {
        await recover(steal);
      } catch (fault) {
        context.log.error("a dead run could not be closed", faultFields(fault));
      }
      if (dead === undefined || context.projector.state("run").current?.run_id !== dead) return;
      await context.sleep(RECOVERY_RETRY_MS, works.signal);
      if (works.stopped()) return;
    }
  };

  const startUnder = async (lease: RunLease, runId: string, request: TriggerRequest): Promise<Triggered> => {
    const { dryRun, cause } = request;
    const first = await appendStart(context, lease, runId, request);
    if (first !== runId) {
      await lease[Symbol.asyncDispose]();
      return { kind: "started", run_id: first, done: Promise.resolve(undefined) };
    }
    const run: RunContext = { ...context, runId, cause, fence: lease.fence, signal: lease.signal };
    const done = works.start("a run", lease, () => perform(run, lease, dryRun));
    void works.track(
      done.then((report) => (report === undefined && !works.stopped() ? recoverUntilClosed(false) : undefined)),
    );
    return { kind: "started", run_id: runId, done };
  };

  const trigger = async (request: TriggerRequest): Promise<Triggered> => {
    const refused = await refuse(context, request.dryRun, request.cause);
    if (refused !== undefined) return refused;
    const runId = context.makeId();
    const lease = await takeRunLeaseOrLearn(context, runId);
    if ("kind" in lease) return lease;
    try {
      // Another instance may have made the last run, and used up the day while the lease was waited for.
      await catchUp(context);
      const refusedNow = await refuse(context, request.dryRun, request.cause);
      if (refusedNow !== undefined) {
        await lease[Symbol.asyncDispose]();
        return refusedNow;
      }
      if (context.projector.state("run").current === null) return await startUnder(lease, runId, request);
    } catch (fault) {
      await lease[Symbol.asyncDispose]();
      throw fault;
    }
    // The lease was free, so that run's process is dead.
    void recoverUnder(lease);
    return runningNow(context);
  };

  return {
    async trigger(request) {
      if (works.stopped()) throw new StoreClosed();
      return works.track(trigger(request));
    },
    recover: ({ steal }) => works.track(recoverUntilClosed(steal)),
    [Symbol.asyncDispose]: works.stop,
  };
}

/** What goes on in the background under a lease of its own, so that a stop can end it and wait for it. */
function createWorks({ log }: OutreachContext) {
  const leases = new Set<RunLease>();
  const pending = new Set<Promise<unknown>>();
  const stopping = new AbortController();
  const { signal } = stopping;

  const track = <T>(work: Promise<T>): Promise<T> => {
    pending.add(work);
    const forget = (): unknown => pending.delete(work);
    work.then(forget, forget);
    return work;
  };

  return {
    /** Aborts when all work has to end. */
    signal,
    stopped: () => signal.aborted,
    /** Lets a stop wait for work that holds no lease yet. */
    track,
    /** Does the work and releases the lease; a fault is logged and answered as undefined. */
    start<T>(what: string, lease: RunLease, work: () => Promise<T>): Promise<T | undefined> {
      leases.add(lease);
      if (signal.aborted) lease.end("stopped");
      const end = (async () => {
        try {
          return await work();
        } catch (fault) {
          log.error(`${what} failed`, faultFields(fault));
          return undefined;
        } finally {
          leases.delete(lease);
          await lease[Symbol.asyncDispose]();
        }
      })();
      return track(end);
    },
    async stop(): Promise<void> {
      stopping.abort();
      for (const lease of leases) lease.end("stopped");
      // A trigger that was under way may have started a run meanwhile.
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}

async function refuse(context: OutreachContext, dryRun: boolean, cause: Cause): Promise<Triggered | undefined> {
  const day = today(context);
  switch (decideStart(outreachState(context), context.rules, day, dryRun)) {
    case "not_authorized":
      return { kind: "not_authorized" };
    case "limit_reached": {
      const used = usedOn(context.projector.state("quota"), day);
      const data = { reason: "daily_limit_reached", day, used } as const;
      const appended = await context.journal.append(STREAMS.outreach, [{ type: "RunRefused", data }], cause);
      await context.projector.until(appended.last);
      return { kind: "limit_reached" };
    }
    default:
      // A run in the log may be one whose process died: only the lease can tell.
      return undefined;
  }
}

/** The lease, or what is in progress under it elsewhere. */
async function takeRunLeaseOrLearn(context: OutreachContext, runId: string): Promise<RunLease | Triggered> {
  const never = new AbortController().signal;
  for (let poll = 1; ; poll++) {
    const lease = await takeRunLease(context, runId, false);
    if (lease !== undefined) return lease;
    const running = await runningNow(context);
    // Its holder may just be about to say which run it starts, or may be done already.
    if (running.run_id !== undefined || poll >= START_POLLS) return running;
    await context.sleep(START_POLL_MS, never);
  }
}

async function runningNow(context: OutreachContext): Promise<Extract<Triggered, { kind: "running" }>> {
  await catchUp(context);
  return {
    kind: "running",
    run_id: context.projector.state("run").current?.run_id,
  };
}

/** Appends the run's start. Answers the id of the run: an earlier one's when the key is known. */
async function appendStart(
  context: OutreachContext,
  lease: RunLease,
  runId: string,
  { dryRun, cause, key }: TriggerRequest,
): Promise<string> {
  const fact: Fact = { type: "RunStarted", data: { run_id: runId, dry_run: dryRun } };
  const options = { fence: lease.fence, ...(key === undefined || dryRun ? {} : { key }) };
  const appended = await context.journal.append(STREAMS.outreach, [fact], cause, options);
  await context.projector.until(appended.last);
  if (!appended.repeated) return runId;
  for await (const event of context.journal.store.read({
    from: appended.first,
    to: appended.first,
  })) {
    if (event.type === "RunStarted") return event.data.run_id;
  }
  throw new Error(`no run starts at position ${appended.first}`);
}

async function perform(run: RunContext, lease: RunLease, dryRun: boolean): Promise<RunReport | undefined> {
  const timer = new AbortController();
  void run.sleep(run.runMaxMs, timer.signal).then(() => {
    if (!timer.signal.aborted) lease.end("time_limit");
  });
  try {
    return dryRun ? await performDry(run) : await performReal(run, lease);
  } finally {
    timer.abort();
  }
}

async function performReal(run: RunContext, lease: RunLease): Promise<RunReport> {
  let reason: RunEnd;
  try {
    await settleOpen(run, lease);
    reason = await performRun(run);
    if (CALLS_FOR_ACTION.has(reason)) await run.announce(`outreach stopped: ${reason}`, `run/${run.runId}`);
    await settleOpen(run, lease);
  } catch (fault) {
    if (fault instanceof LeaseLost) throw fault;
    run.log.error("a run ended by a fault", {
      run_id: run.runId,
      ...faultFields(fault),
    });
    reason = "fault";
  }
  const counts = countsOf(run);
  const { started_at } = currentOf(run);
  const data = { run_id: run.runId, reason, ...counts };
  const finished_at = await appendEnd(run, { type: "RunFinished", data });
  return { ...data, started_at, finished_at };
}

async function performDry(run: RunContext): Promise<RunReport> {
  const { started_at } = currentOf(run);
  const preview = await performDryRun(run);
  const data = {
    run_id: run.runId,
    reason: preview.reason,
    would_send: preview.would_send.length,
    would_skip: preview.would_skip.length,
  };
  const finished_at = await appendEnd(run, { type: "DryRunFinished", data });
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  return {
    run_id: run.runId,
    reason: preview.reason,
    ...counts,
    started_at,
    finished_at,
    preview,
  };
}

/** Appends the run's end and answers when it was recorded. */
async function appendEnd(run: RunContext, fact: Fact): Promise<string> {
  const appended = await run.journal.append(STREAMS.outreach, [fact], run.cause, { fence: run.fence });
  await run.projector.until(appended.last);
  return run.projector.time ?? isoTime(run.clock());
}

/** Settles whatever any run left in doubt. */
async function settleOpen(context: OutreachContext, lease: RunLease): Promise<void> {
  await reconcile(context, new Map(context.projector.state("run").open), lease.signal);
}

async function abandon(context: OutreachContext, lease: RunLease): Promise<void> {
  for (;;) {
    const { current, version } = context.projector.state("run");
    if (current === null) return;
    const { run_id, sent, skipped, failed, in_doubt } = current;
    const fact: Fact = {
      type: "RunAbandoned",
      data: { run_id, sent, skipped, failed, in_doubt },
    };
    try {
      const options = { expected: version, fence: lease.fence };
      const appended = await context.journal.append(STREAMS.outreach, [fact], OWN_CAUSE, options);
      return await context.projector.until(appended.last);
    } catch (fault) {
      if (!(fault instanceof VersionConflict)) throw fault;
      await catchUp(context);
    }
  }
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
