import type { Fence, Lease } from "eventstore-lite";
import type { RunEnd } from "../../events/outreach.ts";
import { errorFields } from "../platform/logger.ts";
import type { OutreachContext } from "./context.ts";

/** Under this lease runs are made: one at a time over all instances. */
const RUN_LEASE = "run";

/** Long enough for a slow renewal, short enough that a dead instance does not block the next run for long. */
const LEASE_TTL_MS = 30_000;
const LEASE_RENEW_MS = 10_000;

/** Longer than one request to send takes. */
const SEND_MS_MAX = 20_000;

/** The right to run, kept until it is released. `end` aborts the signal with the reason as the run's end. */
export interface RunLease extends AsyncDisposable {
  readonly fence: Fence;
  readonly signal: AbortSignal;
  end(reason: RunEnd): void;
  /**
   * Renews it. The answer tells, as often as it is asked, whether the lease lasts for a send from then on: also where
   * this process stood still, or waited for something else, since the renewal was asked for.
   */
  keep(): Promise<() => boolean>;
}

/** Takes the lease for one run; undefined while another holds it. `steal`: its holder is known to be dead. */
export async function takeRunLease(
  context: OutreachContext,
  runId: string,
  steal: boolean,
): Promise<RunLease | undefined> {
  const { leases } = context.eventLog.store;
  // Each run is a holder of its own, so that two triggers in one process exclude each other too.
  const holder = `${context.holder}/${runId}`;
  const acquire = (): Promise<Lease | undefined> =>
    leases.acquire(RUN_LEASE, { holder, ttlMs: LEASE_TTL_MS, steal: false });
  const lease = steal ? await leases.acquire(RUN_LEASE, { holder, ttlMs: LEASE_TTL_MS, steal }) : await acquire();
  if (lease === undefined) return undefined;

  const ending = new AbortController();
  const released = new AbortController();
  const renew = async (): Promise<boolean> => {
    const renewed = await acquire().catch((fault: unknown) => {
      context.logger.error("the run's lease could not be renewed", errorFields(fault));
      return undefined;
    });
    // Another token means that the lease ran out meanwhile: what it fenced may be out of date.
    if (renewed?.token === lease.token) return true;
    if (renewed !== undefined) await leases.release(renewed).catch(() => {});
    ending.abort("fault" satisfies RunEnd);
    return false;
  };
  const renewing = (async () => {
    do await context.sleep(LEASE_RENEW_MS, released.signal);
    while (!released.signal.aborted && (await renew()));
  })();

  return {
    fence: { lease: RUN_LEASE, token: lease.token },
    signal: ending.signal,
    end: (reason) => ending.abort(reason),
    async keep() {
      const askedAt = context.clock();
      const isRenewed = await renew();
      return () => {
        const sinceMs = context.clock() - askedAt;
        // A renewal of some time ago may be out of date, and so may one on a clock that was set back.
        return isRenewed && sinceMs >= 0 && sinceMs < LEASE_TTL_MS - SEND_MS_MAX;
      };
    },
    async [Symbol.asyncDispose]() {
      released.abort();
      await renewing;
      await leases.release(lease).catch(() => {});
    },
  };
}
