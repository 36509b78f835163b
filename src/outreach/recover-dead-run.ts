// Settles the messages of a run whose process has died, and closes the run. It never continues one.
import type { Run } from "../../projections/current-run.ts";
import { SERVICE_METADATA, STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import { handle, record, type AppendDecision } from "../log/decide-and-append.ts";
import { takeLease, type HeldLease, ROLES } from "../log/leases-and-roles.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { errorFields } from "../platform/logger.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { waitForProjections, type OutreachContext, type Waiting } from "./run-context.ts";
import { countSettled, settleOpen } from "./settle-messages-in-doubt.ts";
import { decideEnd } from "./requested/recipients-named-in-trigger.ts";
import type { BackgroundTasks } from "./task-tracker.ts";

/**
 * Time between two attempts to close the run of a dead process, in ms. The dead run's lease may last another 30 s, and
 * a full disk may refuse the append for hours.
 */
const RETRY_MS = 5_000;

/** A lookup of messages in doubt that is in progress in this process. */
export interface Lookup {
  readonly caller: string | undefined;
  /** Start of the lookup, ISO 8601. */
  readonly started_at: string;
}

/** Creates the functions that close a run whose process has died. */
export function createRecovery(context: OutreachContext, backgroundTasks: BackgroundTasks) {
  const { sleep, clock } = context;
  let lookup: Lookup | undefined;

  /**
   * Finds out and records the outcome of each unfinished message of the open run, then records the run's end. `lease`:
   * the run lease, which was free, so the run's process is dead.
   */
  const recoverWithLease = async (lease: HeldLease, callerOfLookup?: EventMetadata): Promise<void> => {
    await backgroundTasks.start("the recovery of a run", { lease, logger: context.logger }, async () => {
      const signal = AbortSignal.any([lease.lost, backgroundTasks.stopping]);
      const before = new Map(context.projector.state("run").open);
      const from = context.projector.position + 1;
      const waiting: Waiting = { signal, pause: (_reason, until) => sleep(until - clock(), signal) };
      const detail = await settleOpen(context, waiting, callerOfLookup);
      if (signal.aborted) return;
      const report = await reportAbandoned(context);
      const decide = () => decideAbandoned(context.projector.state("run"), report);
      await handle(context, STREAMS.outreach, decide, { metadata: SERVICE_METADATA, lease });
      if (callerOfLookup === undefined) return;
      const settled = await countSettled(context.eventLog.store, from, before);
      const data = { in_doubt: before.size, ...settled, ...omitUndefined({ detail }) };
      await record(context, STREAMS.outreach, [{ type: "MessagesLookedUp", data }], { metadata: callerOfLookup });
    });
  };

  const once = async (steal: boolean): Promise<"settled" | "running"> => {
    const { current, open } = context.projector.state("run");
    if (current === null && open.size === 0) return "settled";
    // Takes the lease as a new holder: as the run's own holder this would succeed, as a renewal, even if the run is
    // still in progress.
    const lease = await takeRunLease(context, context.makeId(), steal);
    if (lease === undefined) return "running";
    await recoverWithLease(lease);
    return "settled";
  };

  return {
    recoverWithLease,
    /** The lookup in progress. Undefined if there is none in this process. */
    lookup: () => lookup,
    /**
     * Begins to look up the messages in doubt and to close a dead run, and records the result in the caller's name.
     * `running`: nothing was begun, because a run or another lookup is in progress and settles them.
     */
    async lookUp(metadata: EventMetadata): Promise<{ readonly in_doubt: number } | "running"> {
      await waitForProjections(context);
      const { current, open } = context.projector.state("run");
      const { size } = open;
      if (current === null && size === 0) return { in_doubt: 0 };
      const lease = await takeRunLease(context, context.makeId(), false);
      if (lease === undefined) return "running";
      lookup = { caller: metadata.caller, started_at: isoTime(clock()) };
      void recoverWithLease(lease, metadata).finally(() => (lookup = undefined));
      return { in_doubt: size };
    },
    /**
     * Tries once to settle messages in doubt and to close the run of a dead process. `running`: another run is in
     * progress.
     */
    async tryOnce(): Promise<"settled" | "running"> {
      await waitForProjections(context);
      return once(false);
    },
    /**
     * Repeats the attempt to close a dead run until the log accepts it, because nothing else closes it. `steal`: the
     * first attempt takes the dead run's lease before it expires; later ones do not, as a live run may hold it by then.
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

/** Makes the request for the report of the open run, whose process is dead. */
async function reportAbandoned({ projector, reportEnd }: OutreachContext): Promise<readonly NewEvent[]> {
  const { current } = projector.state("run");
  if (current === null || current.dry_run) return [];
  return reportEnd({ ...current, reason: "abandoned", usd: null });
}

/** Closes the open run, whose process is dead, and requests its report. No events if another instance has closed it. */
export function decideAbandoned({ current }: Run, report?: readonly NewEvent[]): AppendDecision<unknown> {
  if (current === null) return { events: [] };
  const { run_id, sent, skipped, failed, in_doubt } = current;
  const end = { type: "RunAbandoned", data: { run_id, sent, skipped, failed, in_doubt } } as const;
  return decideEnd(current, end, () => true, report);
}

/**
 * Terms of the lease for a run, which only one instance can hold. It lasts 30 s, so that a dead process delays the next
 * run only briefly.
 */
const TERMS = { name: ROLES.run, ttlMs: 30_000, renewMs: 10_000 };

/**
 * Takes the lease for one run; undefined while another run holds it. The run's id is part of the holder, so two runs in
 * one process exclude each other too. `steal`: its holder is known to be dead.
 */
export function takeRunLease(context: OutreachContext, runId: string, steal: boolean): Promise<HeldLease | undefined> {
  return takeLease(context, { ...TERMS, holder: `${context.holder}/${runId}`, steal });
}
