import type { Run } from "../../projections/run.ts";
import { SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import { handle, type AppendDecision } from "../log/decide-and-append.ts";
import { takeLease, type HeldLease, ROLES } from "../log/lease.ts";
import { errorFields } from "../platform/logger.ts";
import { waitForProjections, type OutreachContext } from "./context.ts";
import { settleOpen } from "./reconcile.ts";
import type { BackgroundTasks } from "./task-tracker.ts";

/** Time between two attempts to close a dead run. Its lease may last for 30 s, a full disk for hours. */
const RETRY_MS = 5_000;

/** Closes runs whose process has died. */
export function createRecovery(context: OutreachContext, backgroundTasks: BackgroundTasks) {
  const { sleep, clock } = context;
  /** Settles and closes the log's open run with a lease that was free. */
  const recoverWithLease = async (lease: HeldLease): Promise<void> => {
    await backgroundTasks.start("the recovery of a run", { lease, logger: context.logger }, async () => {
      const signal = AbortSignal.any([lease.lost, backgroundTasks.stopping]);
      await settleOpen(context, { signal, pause: (_reason, until) => sleep(until - clock(), signal) });
      if (signal.aborted) return;
      const decide = () => decideAbandoned(context.projector.state("run"));
      await handle(context, STREAMS.outreach, decide, { metadata: SERVICE_METADATA, lease });
    });
  };

  const once = async (steal: boolean): Promise<"settled" | "running"> => {
    const { current, open } = context.projector.state("run");
    if (current === null && open.size === 0) return "settled";
    // Uses a separate holder: the run's own holder would renew the lease of a run that is still in progress.
    const lease = await takeRunLease(context, context.makeId(), steal);
    if (lease === undefined) return "running";
    await recoverWithLease(lease);
    return "settled";
  };

  return {
    recoverWithLease,
    /** Tries once, unless a run is in progress. */
    async tryOnce(): Promise<"settled" | "running"> {
      await waitForProjections(context);
      return once(false);
    },
    /**
     * Retries to close a dead run until the log accepts it, because nothing else closes it. `steal` takes its lease
     * without waiting, at the first try only. A later holder took the lease since, and lives.
     */
    async retryUntilClosed(steal: boolean): Promise<void> {
      const dead = context.projector.state("run").current?.run_id;
      const isOpen = (): boolean => dead !== undefined && context.projector.state("run").current?.run_id === dead;
      for (let isFirst = true; isFirst || isOpen(); isFirst = false) {
        try {
          await once(steal && isFirst);
        } catch (fault) {
          context.logger.error("a dead run could not be closed", errorFields(fault));
        }
        if (!isOpen()) return;
        await sleep(RETRY_MS, backgroundTasks.stopping);
        if (backgroundTasks.stopping.aborted) return;
      }
    },
  };
}

/** Closes the run in progress, whose process is dead. Decides nothing if another instance has closed it. */
export function decideAbandoned({ current }: Run): AppendDecision<never> {
  if (current === null) return { events: [] };
  const { run_id, sent, skipped, failed, in_doubt } = current;
  return { events: [{ type: "RunAbandoned", data: { run_id, sent, skipped, failed, in_doubt } }] };
}

/**
 * The lease under which runs are made, one at a time over all instances. A dead run does not block the next one for
 * long.
 */
const TERMS = { name: ROLES.run, ttlMs: 30_000, renewMs: 10_000 };

/**
 * Takes the lease for one run. Each run is a separate holder, so that two triggers in one process also exclude each
 * other. Undefined while another holds it; `steal` says that that one is dead.
 */
export function takeRunLease(context: OutreachContext, runId: string, steal: boolean): Promise<HeldLease | undefined> {
  return takeLease(context, { ...TERMS, holder: `${context.holder}/${runId}`, steal });
}
