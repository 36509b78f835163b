import { StoreClosed, type IdempotencyKey } from "eventstore-lite";
import type { DataOf } from "../../events/catalog.ts";
import { usedAt } from "../../projections/quota.ts";
import { STREAMS, type EventMetadata, eventAt } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import type { Fenced, HeldLease } from "../log/lease.ts";
import { isSkewed } from "../log/log-clock.ts";
import { requireRunStates, waitForProjections, outreachState, quotaNow, type OutreachContext } from "./context.ts";
import { decideStart } from "./decide.ts";
import { toRunRules } from "./run-rules.ts";
import type { RunSelection } from "./run-limits.ts";
import { opensAt } from "./send-window.ts";
import { isoTime } from "../platform/clock.ts";
import { requestFields, withFields } from "../platform/logger.ts";
import { createMeter } from "./network-cost.ts";
import { findTransientEnd, watchForStop } from "./run-end.ts";
import { perform, type RunReport, type StartedRun } from "./execute-run.ts";
import { createRecovery, takeRunLease } from "./recover-dead-run.ts";
import { createBackgroundTasks } from "./task-tracker.ts";

/** `done` resolves when the run has ended: with undefined if it died of a fault, which is logged. */
export type Triggered =
  | {
      readonly kind: "started";
      readonly run_id: string;
      readonly done: Promise<RunReport | undefined>;
    }
  | { readonly kind: "running"; readonly run_id: string | undefined }
  | { readonly kind: "not_authorized" }
  /** `skewMs`: how far the machine's clock is ahead of the log's; negative if it is behind. */
  | { readonly kind: "clock_skewed"; readonly skewMs: number }
  | { readonly kind: "daily_limit_reached" }
  /** `opensAt`: when the sending window opens, ms since the epoch. */
  | { readonly kind: "window_closed"; readonly opensAt: number };

export interface TriggerRequest {
  readonly dryRun: boolean;
  readonly metadata: EventMetadata;
  readonly selection?: RunSelection;
  /**
   * Makes the trigger idempotent: a repeat returns the run that the first one started. If that ended for a transient
   * reason, another run sends what its limit left. A dry run is repeated, because its findings are not recorded.
   */
  readonly key?: IdempotencyKey;
}

/**
 * The holder of the lease starts its run within a moment. Another instance looks for that start this often, and this
 * many times.
 */
const START_POLL_MS = 50;
const START_POLLS = 40;

export type Runner = ReturnType<typeof createRunner>;

export function createRunner(context: OutreachContext) {
  const tasks = createBackgroundTasks();
  const recovery = createRecovery(context, tasks);

  /** Executes a run whose start is in the log. */
  const start = (lease: HeldLease, runId: string, { dryRun, metadata }: TriggerRequest): Triggered => {
    const meter = createMeter(context.network, context.prices);
    const stop = watchForStop(context.projector, runId);
    // All log lines of the run name the request that started it.
    const logger = withFields(context.logger, requestFields(metadata));
    const run: StartedRun = {
      ...context,
      logger,
      network: meter.network,
      runId,
      accountId: context.projector.state("account").user?.id,
      metadata,
      lease,
      signal: AbortSignal.any([lease.lost, tasks.stopping, stop.requested]),
    };
    const done = tasks.start("a run", { lease, logger }, async () => {
      using _watching = stop;
      return await perform(run, meter, dryRun);
    });
    const closed = done.then((report) =>
      report === undefined && !tasks.stopping.aborted ? recovery.retryUntilClosed(false) : undefined,
    );
    void tasks.track(closed);
    return { kind: "started", run_id: runId, done };
  };

  const trigger = async (request: TriggerRequest): Promise<Triggered> => {
    requireRunStates(context);
    const refused = await refuse(context, request);
    if (refused !== undefined) return refused;
    const runId = context.makeId();
    const taken = await takeRunLeaseOrLearn(context, runId);
    if ("kind" in taken) return taken;
    await using held = new AsyncDisposableStack();
    const lease = held.use(taken);
    // Decides again if the lease expired, because the day or the window may be over if this process stood still.
    const first = await lease.fenced(async (fence) => {
      // While this one waited for the lease, another instance may have made the last run and used up the day.
      await waitForProjections(context);
      const refusedNow = await refuse(context, request);
      if (refusedNow !== undefined) return refusedNow;
      if (context.projector.state("run").current !== null) return undefined;
      return appendStart(context, fence, runId, request);
    });
    if (first === undefined) {
      // The lease was free, so that run's process is dead.
      held.move();
      void recovery.recoverWithLease(lease);
      return await runningNow(context);
    }
    if (typeof first === "object") return first;
    if (first !== runId) return { kind: "started", run_id: first, done: Promise.resolve(undefined) };
    held.move();
    return start(lease, runId, request);
  };

  const reconcile = async () => {
    requireRunStates(context);
    return (await recovery.tryOnce()) === "running" ? runningNow(context) : ({ kind: "settled" } as const);
  };

  return {
    async trigger(request: TriggerRequest): Promise<Triggered> {
      if (tasks.stopping.aborted) throw new StoreClosed();
      return tasks.track(trigger(request));
    },
    /**
     * Closes the run of a dead process after settling its messages in doubt. Retries until the log accepts it or the
     * runner stops. `steal` takes the lease without waiting.
     */
    recover: ({ steal }: { readonly steal: boolean }) => tasks.track(recovery.retryUntilClosed(steal)),
    /** Settles messages in doubt, and closes the run of a dead process, unless a run is in progress. */
    reconcile: () => tasks.track(reconcile()),
    [Symbol.asyncDispose]: tasks.stop,
  };
}

async function refuse(
  context: OutreachContext,
  { dryRun, metadata, selection }: TriggerRequest,
): Promise<Triggered | undefined> {
  const now = quotaNow(context);
  const recordRefusal = async (reason: DataOf<"RunRefused">["reason"], until?: string): Promise<void> => {
    const used = usedAt(context.projector.state("quota"), now);
    const data = { reason, day: now.day, used, ...(until === undefined ? {} : { until }), ...selection };
    await record(context, STREAMS.outreach, [{ type: "RunRefused", data }], { metadata });
  };
  const skewMs = context.skewMs();
  if (isSkewed(skewMs)) {
    await recordRefusal("clock_skewed");
    return { kind: "clock_skewed", skewMs };
  }
  switch (decideStart(outreachState(context), context.rules, now, dryRun)) {
    case "not_authorized":
      return { kind: "not_authorized" };
    case "daily_limit_reached":
      await recordRefusal("daily_limit_reached");
      return { kind: "daily_limit_reached" };
    case "window_closed": {
      const opening = opensAt(context.rules.window!, context.timezone, now);
      await recordRefusal("window_closed", isoTime(opening));
      return { kind: "window_closed", opensAt: opening };
    }
    default:
      // The run in the log may be that of a dead process. Only the lease tells.
      return undefined;
  }
}

/** Returns the lease, or the run that is in progress under it elsewhere. */
async function takeRunLeaseOrLearn(context: OutreachContext, runId: string): Promise<HeldLease | Triggered> {
  const never = new AbortController().signal;
  for (let poll = 1; ; poll++) {
    const lease = await takeRunLease(context, runId, false);
    if (lease !== undefined) return lease;
    const running = await runningNow(context);
    // Its holder may be about to record its run, or may be done already.
    if (running.run_id !== undefined || poll >= START_POLLS) return running;
    await context.sleep(START_POLL_MS, never);
  }
}

async function runningNow(context: OutreachContext): Promise<Extract<Triggered, { kind: "running" }>> {
  await waitForProjections(context);
  return { kind: "running", run_id: context.projector.state("run").current?.run_id };
}

/** Appends the run's start and returns the run's id: an earlier run's id if the key is known and that run counts. */
async function appendStart(
  context: OutreachContext,
  fence: Fenced,
  runId: string,
  { dryRun, metadata, selection = {}, key }: TriggerRequest,
): Promise<string> {
  let { limit } = selection;
  const rules = toRunRules(context.rules, context.timezone);
  const append = (under?: IdempotencyKey) => {
    const data = { run_id: runId, dry_run: dryRun, ...selection, ...(limit === undefined ? {} : { limit }), rules };
    return record(context, STREAMS.outreach, [{ type: "RunStarted", data }], { metadata, ...fence, ...under });
  };
  for (let earlier = 0; ; earlier++) {
    const appended = await append(key === undefined || earlier === 0 ? key : { ...key, key: `${key.key}/${earlier}` });
    if (!appended.repeated) return runId;
    if (dryRun) {
      await append();
      return runId;
    }
    const first = await runStartedAt(context, appended.first);
    const end = await findTransientEnd(context.eventLog.store, first);
    if (end === undefined) return first;
    if (limit === undefined) continue;
    limit -= end.places;
    if (limit <= 0) return first;
  }
}

async function runStartedAt({ eventLog }: OutreachContext, position: number): Promise<string> {
  const event = await eventAt(eventLog.store, position);
  if (event.type !== "RunStarted") throw new Error(`no run starts at position ${position}`);
  return event.data.run_id;
}
