import { StoreClosed, type IdempotencyKey } from "eventstore-lite";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { Recipient } from "../../events/outreach.ts";
import { usedAt } from "../../projections/quota.ts";
import { STREAMS, type EventMetadata } from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import type { Fenced, HeldLease } from "../log/leases-and-roles.ts";
import { isSkewed } from "../log/log-time-and-clock-skew.ts";
import {
  forCampaign,
  requireRunStates,
  waitForProjections,
  outreachState,
  quotaNow,
  type OutreachContext,
} from "./run-context.ts";
import { decideStart, type UnusableCampaign } from "./decide.ts";
import type { Expected } from "./judge-recipients.ts";
import { joinRun, judgeNow, nextKey, runAt, type Joined } from "./requested/join-run.ts";
import { toRequested, toRequests } from "./requested/recipients-named-in-trigger.ts";
import { toRunRules } from "./run-rules.ts";
import type { RunSelection } from "./quota-and-reasons-to-end-run.ts";
import { opensAt } from "./send-window.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { createSerialQueue } from "../platform/serial-queue.ts";
import { requestFields, withFields } from "../platform/logger.ts";
import { createMeter } from "./network-cost-in-usd.ts";
import { findTransientEnd, watchForStop } from "./run-end-and-stop-request.ts";
import { perform, type RunReport, type StartedRun } from "./execute-run.ts";
import { createRecovery, takeRunLease } from "./recover-dead-run.ts";
import { createBackgroundTasks, type BackgroundTasks } from "./task-tracker.ts";

/**
 * Answer to a trigger of a run. `done` resolves with the run's report once it has ended; with undefined if a fault
 * ended it, which is logged.
 */
export type Triggered =
  | {
      readonly kind: "started";
      readonly run_id: string;
      readonly done: Promise<RunReport | undefined>;
      /** Outcome that the service predicts for each recipient that the request names; absent if it names none. */
      readonly expected?: readonly Expected[];
    }
  | Joined
  | { readonly kind: "running"; readonly run_id: string | undefined }
  | { readonly kind: "not_authorized" }
  /**
   * Refusal of a run because the clocks differ. `skewMs`: how far the machine's clock is ahead of the log's; negative
   * if it is behind.
   */
  | { readonly kind: "clock_skewed"; readonly skewMs: number }
  | { readonly kind: "daily_limit_reached" }
  | { readonly kind: UnusableCampaign; readonly campaign: string }
  /** Refusal of a run because the settings cannot send the campaign's text. `fault`: why not. */
  | { readonly kind: "unusable_text"; readonly campaign: string; readonly fault: string }
  /**
   * Refusal to start a run because the sending window is closed. `opensAt`: when the window opens next, ms since the
   * epoch.
   */
  | { readonly kind: "window_closed"; readonly opensAt: number };

export interface TriggerRequest {
  readonly dryRun: boolean;
  readonly metadata: EventMetadata;
  readonly selection?: RunSelection;
  /**
   * Recipients to write to; undefined for all recipients. The run is for these recipients alone. If `selection` sets no
   * limits, they join a run of the same campaign that is in progress.
   */
  readonly recipients?: readonly Recipient[] | undefined;
  /**
   * Idempotency key of the request. A repeat returns the run of the first request; if that run ended for a passing
   * reason, such as an outage, it starts a new run for the messages not yet sent. A repeated dry run is executed again.
   */
  readonly key?: IdempotencyKey;
}

/**
 * Interval in ms at which an instance that found the lease of runs taken looks which run has it. The holder of the lease
 * records the start of its run within a moment.
 */
const START_POLL_MS = 50;
/** Maximum number of times that a trigger looks for the run of the process that holds the lease. */
const START_POLLS = 40;

export type Runner = ReturnType<typeof createRunner>;

export function createRunner(context: OutreachContext) {
  const tasks = createBackgroundTasks();
  const recovery = createRecovery(context, tasks);

  /** Queue of requests to join a run: two at the same time would conflict at the stream's version. */
  const joins = createSerialQueue();

  const trigger = async (request: TriggerRequest): Promise<Triggered> => {
    requireRunStates(context);
    for (let refused: Triggered | undefined; ;) {
      const joined = joinsRuns(request) ? await joins(() => joinRun(context, request)) : undefined;
      if (joined !== undefined) return joined;
      if (refused !== undefined && context.projector.state("run").current !== null) return refused;
      const triggered = await startRun(request);
      if (triggered.kind !== "running" || triggered.run_id === undefined || !joinsRuns(request)) return triggered;
      // The refusal is returned only if another attempt to join fails too: the run in progress may have begun or ended
      // since the first attempt.
      refused = triggered;
    }
  };

  const startRun = async (request: TriggerRequest): Promise<Triggered> => {
    const refused = await refuse(forCampaign(context, request.selection?.campaign), request);
    if (refused !== undefined) return refused;
    const runId = context.makeId();
    const taken = await takeRunLeaseOrLearn(context, runId);
    if ("kind" in taken) return taken;
    await using held = new AsyncDisposableStack();
    const lease = held.use(taken);
    // If the lease expired while this process was paused, `fenced` calls this function again, and it decides again,
    // because the day or the sending window may be over by then.
    let expected: readonly Expected[] | undefined;
    let own = context;
    const first = await lease.fenced(async (fence) => {
      // While this request waited for the lease, another instance may have made a run that used up the quota.
      await waitForProjections(context);
      const { recipients, selection } = request;
      own = forCampaign(context, selection?.campaign);
      const refusedNow = await refuse(own, request);
      if (refusedNow !== undefined) return refusedNow;
      if (context.projector.state("run").current !== null) return undefined;
      expected = recipients && judgeNow(own, recipients, selection);
      return appendStart(own, fence, runId, request);
    });
    if (first === undefined) {
      // A run is open although its lease was free, so its process is dead.
      held.move();
      void recovery.recoverWithLease(lease);
      return await runningNow(context);
    }
    if (typeof first === "object") return first;
    const known = omitUndefined({ expected });
    if (first !== runId) return { kind: "started", run_id: first, done: Promise.resolve(undefined), ...known };
    held.move();
    return { ...executeRun(own, { lease, runId, tasks, recovery }, request), ...known };
  };

  return {
    async trigger(request: TriggerRequest): Promise<Triggered> {
      if (tasks.stopping.aborted) throw new StoreClosed();
      return tasks.track(trigger(request));
    },
    /**
     * Settles the messages in doubt of a dead process's run and closes it. Retries until the log accepts it or the
     * service stops. `steal`: takes the run's lease before it expires.
     */
    recover: ({ steal }: { readonly steal: boolean }) => tasks.track(recovery.retryUntilClosed(steal)),
    /** Begins a lookup of the messages in doubt, in the caller's name. */
    async lookUp(metadata: EventMetadata) {
      requireRunStates(context);
      return tasks.track(recovery.lookUp(metadata));
    },
    lookup: recovery.lookup,
    /** Settles messages in doubt, and closes the run of a dead process, unless a run is in progress. */
    reconcile: () => tasks.track(reconcile(context, recovery)),
    [Symbol.asyncDispose]: tasks.stop,
  };
}

interface Begun {
  readonly lease: HeldLease;
  readonly runId: string;
  readonly tasks: BackgroundTasks;
  readonly recovery: ReturnType<typeof createRecovery>;
}

/** Executes a run whose start is in the log. Returns at once, with a promise of the run's end. */
function executeRun(context: OutreachContext, { lease, runId, tasks, recovery }: Begun, request: TriggerRequest) {
  const { dryRun, metadata } = request;
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
  return { kind: "started", run_id: runId, done } as const;
}

async function reconcile(context: OutreachContext, { tryOnce }: ReturnType<typeof createRecovery>) {
  requireRunStates(context);
  return (await tryOnce()) === "running" ? runningNow(context) : ({ kind: "settled" } as const);
}

/**
 * Refuses a request for a run by the present state. `context`: that of its campaign. Undefined if the run may start.
 */
async function refuse(
  context: OutreachContext,
  { dryRun, metadata, selection, recipients }: TriggerRequest,
): Promise<Triggered | undefined> {
  const now = quotaNow(context);
  const recordRefusal = async (reason: DataOf<"RunRefused">["reason"], until?: string): Promise<void> => {
    const used = usedAt(context.projector.state("quota"), now);
    const named = omitUndefined({ until, recipients: recipients?.length });
    const data = { reason, day: now.day, used, ...named, ...selection };
    await record(context, STREAMS.outreach, [{ type: "RunRefused", data }], { metadata });
  };
  const skewMs = context.skewMs();
  if (isSkewed(skewMs)) {
    await recordRefusal("clock_skewed");
    return { kind: "clock_skewed", skewMs };
  }
  const { rules } = context;
  const start = decideStart(outreachState(context), rules, now, dryRun);
  switch (start) {
    case "not_authorized":
      return { kind: "not_authorized" };
    case "unknown_campaign":
    case "campaign_ended":
      await recordRefusal(start);
      return { kind: start, campaign: rules.campaign ?? "" };
    case "daily_limit_reached":
      await recordRefusal("daily_limit_reached");
      return { kind: "daily_limit_reached" };
    case "window_closed": {
      const opening = opensAt(context.rules.window!, context.timezone, now);
      await recordRefusal("window_closed", isoTime(opening));
      return { kind: "window_closed", opensAt: opening };
    }
    default:
      if (rules.textFault !== undefined)
        return { kind: "unusable_text", campaign: rules.campaign ?? "", fault: rules.textFault };
      // A run that the log shows as open may have a dead process; the lease, which is taken next, tells.
      return undefined;
  }
}

/**
 * True if the request's recipients may join a run in progress. A request with limits of its own may not, as they would
 * apply to that run's other recipients.
 */
function joinsRuns({ recipients, dryRun, selection = {} }: TriggerRequest): boolean {
  const { campaign: _campaign, ...limits } = selection;
  return recipients !== undefined && !dryRun && Object.keys(limits).length === 0;
}

/**
 * Takes the lease that allows one run at a time. If another run holds it, returns that run as `running`; without an id
 * if the log does not show its start in time.
 */
async function takeRunLeaseOrLearn(context: OutreachContext, runId: string): Promise<HeldLease | Triggered> {
  const never = new AbortController().signal;
  for (let poll = 1; ; poll++) {
    const lease = await takeRunLease(context, runId, false);
    if (lease !== undefined) return lease;
    const running = await runningNow(context);
    // Without a run in the log, the holder of the lease is about to record its run, or has just ended it. So the loop
    // looks again, a limited number of times.
    if (running.run_id !== undefined || poll >= START_POLLS) return running;
    await context.sleep(START_POLL_MS, never);
  }
}

async function runningNow(context: OutreachContext): Promise<Extract<Triggered, { kind: "running" }>> {
  await waitForProjections(context);
  return { kind: "running", run_id: context.projector.state("run").current?.run_id };
}

/**
 * Appends the start of the run and returns its id. If the idempotency key was used before and that run completed or is
 * in progress, returns that run's id and appends nothing.
 */
async function appendStart(
  context: OutreachContext,
  fence: Fenced,
  runId: string,
  { dryRun, metadata, selection = {}, recipients, key }: TriggerRequest,
): Promise<string> {
  let { limit } = selection;
  const rules = toRunRules(context.rules, context.timezone);
  const append = (under?: IdempotencyKey) => {
    const requested = recipients && toRequested(context.projector.state("contacts"), recipients);
    const limits = { ...selection, ...omitUndefined({ limit, recipients: requested?.length }) };
    const begin = { type: "RunStarted", data: { run_id: runId, dry_run: dryRun, ...limits, rules } } as const;
    const events = [begin, ...toRequests(runId, requested ?? [])];
    return record(context, STREAMS.outreach, events, { metadata, ...fence, ...under });
  };
  for (let earlier = 0; ; earlier++) {
    const appended = await append(nextKey(key, earlier));
    if (!appended.repeated) return runId;
    if (dryRun) {
      await append();
      return runId;
    }
    const first = await runAt(context, appended.first);
    const end = await findTransientEnd(context.eventLog.store, first);
    if (end === undefined) return first;
    if (limit === undefined) continue;
    limit -= end.places;
    if (limit <= 0) return first;
  }
}
