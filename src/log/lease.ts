import { LeaseLost, type Fence, type Lease } from "eventstore-lite";
import type { Clock } from "../platform/clock.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import type { EventLog } from "./event-log.ts";

export interface LeaseDeps {
  readonly eventLog: EventLog;
  readonly clock: Clock;
  /** Waits `ms`, or less when the signal aborts; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly logger: Logger;
}

export interface LeaseTerms {
  readonly name: string;
  /** Whoever asks under the same name holds it already. */
  readonly holder: string;
  readonly ttlMs: number;
  readonly renewMs: number;
  /** The one who holds it is known to be dead. */
  readonly steal?: boolean;
}

/** A lease of the store, renewed until it is disposed. */
export interface HeldLease extends AsyncDisposable {
  /** Refuses appends once another held it. */
  readonly fence: Fence;
  /** Aborts once another held it, or it ran out while this process stood still. */
  readonly lost: AbortSignal;
  /**
   * Renews it. The answer says, as often as it is asked, whether the lease lasts for `ms` from then on: also where this
   * process stood still, or waited for something else, since the renewal was asked for.
   */
  keep(ms: number): Promise<() => boolean>;
}

/** Undefined while another holds it. */
export async function takeLease(
  { eventLog, clock, sleep, logger }: LeaseDeps,
  { name, holder, ttlMs, renewMs, steal = false }: LeaseTerms,
): Promise<HeldLease | undefined> {
  const { leases } = eventLog.store;
  const taken = await leases.acquire(name, { holder, ttlMs, steal });
  if (taken === undefined) return undefined;
  let held: Lease = taken;
  const lost = new AbortController();
  const disposed = new AbortController();

  /**
   * One that was lost is held anew where it is free, so that nobody else begins before what is under way here has ended;
   * what the first token fences is refused all the same. A renewal that fails is not the last: the next comes in time.
   */
  const renew = async (): Promise<boolean> => {
    try {
      const renewed = await leases.acquire(name, { holder, ttlMs });
      held = renewed ?? held;
      if (renewed?.token !== taken.token) lost.abort(new LeaseLost(name));
      return !lost.signal.aborted;
    } catch (fault) {
      logger.error("a lease could not be renewed", { lease: name, ...errorFields(fault) });
      return false;
    }
  };
  const renewing = (async () => {
    for (;;) {
      await sleep(renewMs, disposed.signal);
      if (disposed.signal.aborted) return;
      await renew();
    }
  })();

  return {
    fence: { lease: name, token: taken.token },
    lost: lost.signal,
    async keep(ms) {
      const askedAt = clock();
      const isRenewed = await renew();
      return () => {
        const sinceMs = clock() - askedAt;
        // A renewal of some time ago may be out of date, and so may one on a clock that was set back.
        return isRenewed && sinceMs >= 0 && sinceMs < ttlMs - ms;
      };
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
