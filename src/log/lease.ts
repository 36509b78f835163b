import { LeaseLost, type Fence, type Lease } from "eventstore-lite";
import { systemClock, type Clock } from "../platform/clock.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import type { EventLog } from "./event-log.ts";

export interface LeaseDeps {
  readonly eventLog: EventLog;
  /** The machine's: the log's would not show that it slept. Default: the system's. */
  readonly wallClock?: Clock | undefined;
  /** A clock that only goes forward, in ms. */
  readonly elapsedMs?: () => number;
  /** Waits `ms`, or less when the signal aborts; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly logger: Logger;
  /** All times of leases are multiplied by it, for tests in real time; default 1. */
  readonly leaseScale?: number | undefined;
}

export interface LeaseTerms {
  readonly name: string;
  /** A caller with the same name holds the lease already. */
  readonly holder: string;
  readonly ttlMs: number;
  readonly renewMs: number;
  /** The one who holds it is known to be dead. */
  readonly steal?: boolean;
}

/** Of an append, beside its other conditions: refused with LeaseLost once another had the lease. */
export interface Fenced {
  readonly fence?: Fence;
}

/** A lease of the store, renewed until it is disposed. */
export interface HeldLease extends AsyncDisposable {
  /** Names this holding: another one, also by the same holder, has a larger number. */
  readonly token: number;
  /** Aborts when another has held it since it was taken. */
  readonly lost: AbortSignal;
  /**
   * Whether it lasts for `ms` from now on, by what is known here: neither a process that stood still nor a clock that
   * was moved takes another's time for its own. To be asked right before what no fence can refuse.
   */
  lasts(ms: number): boolean;
  /** Renews it first; the answer is {@link HeldLease.lasts}, as often as it is asked. */
  keep(ms: number): Promise<() => boolean>;
  /** Appends with its fence, once more where the lease had expired and no other holder took it. */
  fenced<T>(append: (conditions: Fenced) => Promise<T>): Promise<T>;
}

/** Undefined while another holds it. */
export async function takeLease(deps: LeaseDeps, terms: LeaseTerms): Promise<HeldLease | undefined> {
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
  /** That of the last lease before it was lost. */
  let { token } = taken;
  const lost = new AbortController();
  const disposed = new AbortController();
  let isFailing = false;

  /**
   * Takes an expired lease again where it is free, so that no other instance begins before the work here has ended. Tokens
   * grow by one with each holder, so they show whether there was another. After a failed renewal the next one is tried in
   * time; consecutive failures are one line of the operator's log.
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
      isFailing = false;
      return true;
    } catch (fault) {
      if (!isFailing) logger.error("a lease could not be renewed", { lease: name, ...errorFields(fault) });
      isFailing = true;
      return false;
    }
  };
  const renewing = (async () => {
    for (;;) {
      await sleep(terms.renewMs * leaseScale, disposed.signal);
      if (disposed.signal.aborted) return;
      await renew();
    }
  })();

  const lasts = (ms: number): boolean => !lost.signal.aborted && deadline.lasts(ms * leaseScale);
  const conditions = (): Fenced => ({ fence: { lease: name, token } });
  return {
    token: taken.token,
    lost: lost.signal,
    lasts,
    async keep(ms) {
      await renew();
      return () => lasts(ms);
    },
    async fenced(append) {
      try {
        return await append(conditions());
      } catch (fault) {
        if (!(fault instanceof LeaseLost) || !(await renew())) throw fault;
        return append(conditions());
      }
    },
    async [Symbol.asyncDispose]() {
      disposed.abort();
      await renewing;
      try {
        await leases.release(held);
      } catch (fault) {
        // It runs out; what was done under it stands.
        logger.error("a lease could not be released", { lease: name, ...errorFields(fault) });
      }
    },
  };
}

/** Appends under the lease, where there is one. */
export function fenced<T>(lease: HeldLease | undefined, append: (conditions: Fenced) => Promise<T>): Promise<T> {
  return lease === undefined ? append({}) : lease.fenced(append);
}

/**
 * Until when a lease lasts, counted from before it was asked for. By two clocks, since either alone may be wrong: one is
 * set back, the other does not go on while a machine sleeps.
 */
function createDeadline(
  { wallClock: clock = systemClock, elapsedMs = () => performance.now() }: LeaseDeps,
  ttlMs: number,
) {
  let asked = { clock: -Infinity, elapsed: -Infinity };
  return {
    /** Notes the time. The answer is called when the lease was granted. */
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
