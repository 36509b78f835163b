import { LeaseLost, type Fence, type Lease } from "eventstore-lite";
import { systemClock, type Clock } from "../platform/clock.ts";
import { errorFields, createFaultReport } from "../platform/logger.ts";
import type { EventLog, PartDeps } from "./event-log.ts";
import type { ChannelName } from "../../events/channel.ts";
import { untilAborted, repeatUntilDisposed, workUntilDisposed } from "../platform/signals.ts";

export interface LeaseDeps extends Pick<PartDeps, "eventLog" | "logger" | "sleep"> {
  /** The machine's clock, because the log's would not show that the machine slept. Default: the system's. */
  readonly wallClock?: Clock | undefined;
  /** A clock that only goes forward, in ms. */
  readonly elapsedMs?: () => number;
  /** Factor for all times of leases, for tests in real time; default 1. */
  readonly leaseScale?: number | undefined;
}

export interface LeaseTerms {
  readonly name: string;
  /** Names the holder: a caller with the same name holds the lease already. */
  readonly holder: string;
  readonly ttlMs: number;
  readonly renewMs: number;
  /** True if the present holder is known to be dead. */
  readonly steal?: boolean;
}

/** Condition of an append, together with its others: refused with LeaseLost once another had the lease. */
export interface Fenced {
  readonly fence?: Fence;
}

/** A lease of the store, renewed until it is disposed. */
export type HeldLease = NonNullable<Awaited<ReturnType<typeof takeLease>>>;

/** Undefined while another holds the lease. */
export async function takeLease(deps: LeaseDeps, terms: LeaseTerms) {
  const { eventLog, sleep, logger, leaseScale = 1 } = deps;
  const { name, holder, steal = false } = terms;
  const ttlMs = terms.ttlMs * leaseScale;
  const { leases } = eventLog.store;
  const deadline = createDeadline(deps, ttlMs);
  const extend = deadline.ask();
  const taken = await leases.acquire(name, { holder, ttlMs, steal });
  if (taken === undefined) return undefined;
  extend();
  let held: Lease = taken;
  /** Token of the last lease before it was lost. */
  let { token } = taken;
  const lost = new AbortController();
  const report = createFaultReport(logger.error, "a lease could not be renewed", { lease: name });

  /**
   * Takes an expired lease again if it is free, so that no other instance begins before the work here has ended. Tokens
   * grow by one with each holder, so they show if there was another. A failed renewal is repeated in time.
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
    /** Identifies this holding; a later one, even by the same holder, has a larger number. */
    token: taken.token,
    /** Aborts once another has held the lease since it was taken. */
    lost: lost.signal,
    /**
     * True if the lease lasts for `ms` from now on, as known here, even if the process stood still or one clock was
     * moved. Ask right before an action that no fence can refuse.
     */
    lasts,
    /** Renews the lease first. Returns {@link HeldLease.lasts} for `ms`, which may be called repeatedly. */
    async keep(ms: number): Promise<() => boolean> {
      await renew();
      return () => lasts(ms);
    },
    /** Appends with the lease's fence, and once more if the lease had expired and no other holder took it. */
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
        // The lease runs out; work done under it stands.
        logger.error("a lease could not be released", { lease: name, ...errorFields(fault) });
      }
    },
  };
}

/** Appends under the lease if there is one. */
export function fenced<T>(lease: HeldLease | undefined, append: (conditions: Fenced) => Promise<T>): Promise<T> {
  return lease === undefined ? append({}) : lease.fenced(append);
}

/**
 * The time at which a lease ends, counted from before it was requested. It uses two clocks, since either alone may be
 * wrong: one is set back, the other stands still while a machine sleeps.
 */
function createDeadline(
  { wallClock: clock = systemClock, elapsedMs = () => performance.now() }: LeaseDeps,
  ttlMs: number,
) {
  let asked = { clock: -Infinity, elapsed: -Infinity };
  return {
    /** Notes the time. Call the returned function when the lease was granted. */
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

export interface RolesDeps extends LeaseDeps {
  readonly holder: string;
  /** True if no other instance can have the log open, so that another holder of a lease is dead. */
  readonly isAlone: boolean;
}

/** Work that one instance does for all, until it ends or another takes over. */
export interface Role extends AsyncDisposable {
  readonly isHeld: boolean;
}

export type Roles = ReturnType<typeof createRoles>;

export const ROLES = {
  dispatcher: (channel: ChannelName) => `dispatcher-${channel}`,
  run: "run",
  tokens: "account-tokens",
  retention: "retention",
  archive: "archive",
  signedHeads: "signed-heads",
} as const;

/** The instance that holds each role; roles without a holder are left out. */
export async function listHolders({ store }: EventLog, channels: readonly ChannelName[]) {
  const { dispatcher, ...others } = ROLES;
  const held = await store.leases.list([...channels.map(dispatcher), ...Object.values(others)]);
  // Each run is a separate holder on its instance.
  return Object.fromEntries(held.map(({ name, holder }) => [name, holder.split("/")[0] ?? holder]));
}

/**
 * How often a waiting instance asks, which is a read for the log. A role is taken this late after it was given up, or
 * after a log that refused the lease is writable again.
 */
const ASK_MS = 1_000;

/** Delay before a role that could not begin is tried again. */
const AFTER_FAULT_MS = 10_000;

/** Terms for work that does no harm if two instances do it at a time, after one of them stood still. */
export const HARMLESS = { ttlMs: 60_000, renewMs: 20_000 };

export function createRoles(deps: RolesDeps) {
  const { holder, isAlone, sleep, logger, leaseScale = 1 } = deps;
  return {
    /**
     * Calls `begin` each time this instance takes over, and disposes its result before another may begin. Resolves
     * after the first try. If another has the role, or the log refuses the lease, tries again until the role is
     * disposed.
     */
    async start(
      terms: Pick<LeaseTerms, "name" | "ttlMs" | "renewMs">,
      begin: (lease: HeldLease) => Promise<Disposable | AsyncDisposable>,
    ): Promise<Role> {
      const { name } = terms;
      let askMs = ASK_MS;
      const report = createFaultReport(logger.error, "a role could not be requested", { role: name });

      /** Undefined while another holds the role, or the log refuses the lease. */
      const ask = async (steal: boolean): Promise<HeldLease | undefined> => {
        try {
          const lease = await takeLease(deps, { ...terms, holder, steal });
          report.succeeded();
          return lease;
        } catch (fault) {
          report.failed(fault);
          return undefined;
        }
      };

      const take = async (steal: boolean): Promise<(AsyncDisposable & Pick<HeldLease, "lost">) | undefined> => {
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
