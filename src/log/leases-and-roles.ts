import { LeaseLost, type Fence, type Lease } from "eventstore-lite";
import { systemClock } from "../platform/clock-ids-and-timers.ts";
import { errorFields, createFaultReport } from "../platform/logger.ts";
import type { EventLog, LogContext } from "./event-log.ts";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import { untilAborted, repeatUntilDisposed, workUntilDisposed } from "../platform/signals.ts";

/** Terms of a role's lease: how long it lasts, and how often it is renewed. */
export interface RoleTerms {
  readonly name: string;
  readonly ttlMs: number;
  readonly renewMs: number;
}

export interface LeaseTerms extends RoleTerms {
  /** Name of the lease's holder. A caller with that name holds the lease already. */
  readonly holder: string;
  /** True to take the lease from its present holder, which is known to be dead. */
  readonly steal?: boolean;
}

/** Condition of an append: the log refuses it with LeaseLost once another holder had the lease. */
export interface Fenced {
  readonly fence?: Fence;
}

/** A lease of the store, renewed until it is disposed. */
export type HeldLease = NonNullable<Awaited<ReturnType<typeof takeLease>>>;

/** Takes a lease; undefined while another holder has it. */
export async function takeLease(context: LogContext, terms: LeaseTerms) {
  const { eventLog, sleep, logger, leaseScale = 1 } = context;
  const { name, holder, steal = false } = terms;
  const ttlMs = terms.ttlMs * leaseScale;
  const { leases } = eventLog.store;
  const deadline = createDeadline(context, ttlMs);
  const extend = deadline.ask();
  const taken = await leases.acquire(name, { holder, ttlMs, steal });
  if (taken === undefined) return undefined;
  extend();
  let held: Lease = taken;
  /** Fencing token of the present hold on the lease. After the lease was lost, that of the last hold. */
  let { token } = taken;
  const lost = new AbortController();
  const report = createFaultReport(logger.error, "a lease could not be renewed", { lease: name });

  /**
   * Renews the lease. Takes an expired one again if it is free, so that no other instance begins before the work here
   * has ended. Tokens grow by one with each holder, so they show if there was another.
   */
  const renew = async (): Promise<boolean> => {
    const renewed = deadline.ask();
    try {
      const lease = await leases.acquire(name, { holder, ttlMs });
      if (lease === undefined || lease.token > token + 1) lost.abort(new LeaseLost(name));
      held = lease ?? held;
      if (lost.signal.aborted) return false;
      ({ token } = held);
      renewed();
      report.succeeded();
      return true;
    } catch (fault) {
      report.failed(fault);
      return false;
    }
  };
  const renewing = repeatUntilDisposed(sleep, terms.renewMs * leaseScale, renew);

  const lasts = (ms: number): boolean => !lost.signal.aborted && deadline.lasts(ms * leaseScale);
  const conditions = (): Fenced => ({ fence: { lease: name, token } });
  return {
    /** Fencing token of this hold on the lease. A later hold, even by the same holder, has a larger number. */
    token: taken.token,
    /** Signal that aborts once another holder has had the lease. */
    lost: lost.signal,
    /**
     * Returns true if the lease surely lasts `ms` longer, even if the process stood still or one clock was moved. Call
     * it right before an action that the log cannot refuse, such as a request to a network.
     */
    lasts,
    /**
     * Renews the lease. Returns a function that, like {@link HeldLease.lasts}, is true if the lease surely lasts `ms`
     * longer from the time of its call. It may be called repeatedly.
     */
    async keep(ms: number): Promise<() => boolean> {
      await renew();
      return () => lasts(ms);
    },
    /** Appends under the lease's fence. Appends once more if the lease had expired and no other holder took it. */
    async fenced<T>(append: (conditions: Fenced) => Promise<T>): Promise<T> {
      try {
        return await append(conditions());
      } catch (fault) {
        if (!(fault instanceof LeaseLost) || !(await renew())) throw fault;
        return append(conditions());
      }
    },
    async [Symbol.asyncDispose]() {
      await renewing[Symbol.asyncDispose]();
      try {
        await leases.release(held);
      } catch (fault) {
        // A failed release is only logged: the lease expires by itself, and the work done under it stays valid.
        logger.error("a lease could not be released", { lease: name, ...errorFields(fault) });
      }
    },
  };
}

/** Appends under the lease's fence if there is a lease, else without one. */
export function fenced<T>(lease: HeldLease | undefined, append: (conditions: Fenced) => Promise<T>): Promise<T> {
  return lease === undefined ? append({}) : lease.fenced(append);
}

/**
 * Creates the time at which a lease ends, counted from before it was requested. The lease counts as over once one of
 * two clocks says so: the wall clock may be set back, and the monotonic clock stands still during a sleep.
 */
function createDeadline(
  { wallClock: clock = systemClock, elapsedMs = () => performance.now() }: LogContext,
  ttlMs: number,
) {
  let asked = { clock: -Infinity, elapsed: -Infinity };
  return {
    /** Notes the time of a request for the lease. Call the returned function once the lease was granted. */
    ask(): () => void {
      const now = { clock: clock(), elapsed: elapsedMs() };
      return () => {
        if (now.elapsed >= asked.elapsed) asked = now;
      };
    },
    lasts(ms: number): boolean {
      const sinceMs = clock() - asked.clock;
      return sinceMs >= 0 && Math.max(sinceMs, elapsedMs() - asked.elapsed) < ttlMs - ms;
    },
  };
}

/** Role: work that one instance does for all, until the instance ends or another takes over. */
export interface Role extends AsyncDisposable {
  readonly isHeld: boolean;
}

/** Role that this instance has taken. `lost` aborts when another instance may take it. */
interface TakenRole extends AsyncDisposable {
  readonly lost: AbortSignal;
}

export type Roles = ReturnType<typeof createRoles>;

export const ROLES = {
  dispatcher: (channel: ChannelName) => `dispatcher-${channel}`,
  run: "run",
  tokens: "account-tokens",
  signals: "signals",
  retention: "retention",
  archive: "archive",
  signedHeads: "signed-heads",
} as const;

/** Lists the roles that have a holder, with the instance that holds each. */
export async function listHolders({ store }: EventLog, channels: readonly ChannelName[]) {
  const { dispatcher, ...others } = ROLES;
  const held = await store.leases.list([...channels.map(dispatcher), ...Object.values(others)]);
  // The name of a run's lease holder is the instance's id and then the run's, because each run of an instance is a
  // separate holder.
  return Object.fromEntries(held.map(({ name, holder }) => [name, holder.split("/")[0] ?? holder]));
}

/**
 * Interval in ms at which a waiting instance asks for a role, which costs the log a read. The instance takes a role at
 * most this late after the role was given up, or after the log is writable again.
 */
const ASK_MS = 1_000;

/** Delay in ms before a role that could not begin is tried again. */
const AFTER_FAULT_MS = 10_000;

/**
 * Lease terms for work that does no harm if two instances do it at the same time, as may happen when one of them was
 * paused.
 */
export const HARMLESS = { ttlMs: 60_000, renewMs: 20_000 };

/**
 * Creates the roles of this instance. `isAlone`: no other instance can have the log open, so another holder of a lease
 * is dead.
 */
export function createRoles(context: LogContext, isAlone: boolean) {
  const { holder, sleep, logger, leaseScale = 1 } = context;
  return {
    /**
     * Calls `begin` each time this instance takes over, and disposes its result before another may begin. Resolves
     * after the first try. If another has the role, or the log refuses the lease, tries again until the role is
     * disposed.
     */
    async start(terms: RoleTerms, begin: (lease: HeldLease) => Promise<Disposable | AsyncDisposable>): Promise<Role> {
      const { name } = terms;
      let askMs = ASK_MS;
      const report = createFaultReport(logger.error, "a role could not be requested", { role: name });

      /** Asks for the role's lease. Undefined while another instance has the role, or the log refuses the lease. */
      const ask = async (steal: boolean): Promise<HeldLease | undefined> => {
        try {
          const lease = await takeLease(context, { ...terms, holder, steal });
          report.succeeded();
          return lease;
        } catch (fault) {
          report.failed(fault);
          return undefined;
        }
      };

      const take = async (steal: boolean): Promise<TakenRole | undefined> => {
        askMs = ASK_MS;
        const lease = await ask(steal);
        if (lease === undefined) return undefined;
        try {
          await using taking = new AsyncDisposableStack();
          taking.use(lease);
          taking.use(await begin(lease));
          const taken = taking.move();
          return { lost: lease.lost, [Symbol.asyncDispose]: () => taken.disposeAsync() };
        } catch (fault) {
          logger.error("a role could not start", { role: name, ...errorFields(fault) });
          askMs = AFTER_FAULT_MS;
          return undefined;
        }
      };

      let held = await take(isAlone);
      const going = workUntilDisposed(async (stopping) => {
        for (;;) {
          if (held === undefined) await sleep(askMs * leaseScale, stopping);
          else await untilAborted(AbortSignal.any([held.lost, stopping]));
          const { aborted: isStopping } = stopping;
          if (held !== undefined) {
            if (!isStopping) logger.warn("another instance took over a role", { role: name });
            await held[Symbol.asyncDispose]();
            held = undefined;
          }
          if (isStopping) return;
          held ??= await take(false);
          if (held !== undefined) logger.info("took over a role", { role: name });
        }
      });
      return {
        get isHeld() {
          return held !== undefined && !held.lost.aborted;
        },
        [Symbol.asyncDispose]: () => going[Symbol.asyncDispose](),
      };
    },
  };
}
