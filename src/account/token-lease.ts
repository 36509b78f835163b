import { LeaseLost, type Fence, type Lease } from "eventstore-lite";
import type { Clock } from "../platform/clock.ts";
import type { EventLog } from "../log/event-log.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { SocialError } from "../networks/network.ts";

export interface TokenLeaseDeps {
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Names this process in the lease. */
  readonly holder: string;
  readonly logger: Logger;
}

/** One piece of work at a time, over all processes. Disposing it waits for what is under way. */
export interface TokenLease extends AsyncDisposable {
  /**
   * Throws a SocialError `unavailable` when the others take too long, or when this process stood still for so long that
   * another went ahead.
   */
  run<T>(work: (fence: Fence) => Promise<T>): Promise<T>;
}

const LEASE = "account-tokens";

/**
 * Short, since nobody can refresh while that of a dead process lasts; renewed, since a token request may take longer, and
 * often enough that one renewal may fail.
 */
const LEASE_TTL_MS = 15_000;
const LEASE_RENEW_MS = 5_000;
const LEASE_POLL_MS = 200;

/** Longer than a token request of another process takes, and than the lease of a dead one lasts. */
const WAIT_MS_MAX = 60_000;

export function createTokenLease(deps: TokenLeaseDeps): TokenLease {
  const stopping = new AbortController();
  let queue: Promise<unknown> = Promise.resolve();
  return {
    run(work) {
      // One after the other here, under a lease between processes.
      const turn = queue.then(() => underLease(deps, work, stopping.signal));
      queue = turn.catch(() => {});
      return turn;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await queue;
    },
  };
}

async function underLease<T>(
  deps: TokenLeaseDeps,
  work: (fence: Fence) => Promise<T>,
  stopping: AbortSignal,
): Promise<T> {
  const lease = await take(deps, stopping);
  const done = new AbortController();
  const renewing = keepRenewed(deps, lease, done.signal);
  try {
    return await work({ lease: LEASE, token: lease.token });
  } catch (fault) {
    if (!(fault instanceof LeaseLost)) throw fault;
    throw new SocialError("unavailable", "another process took the tokens over");
  } finally {
    done.abort();
    await release(deps, await renewing);
  }
}

async function take({ eventLog, clock, sleep, holder }: TokenLeaseDeps, stopping: AbortSignal): Promise<Lease> {
  const giveUpAt = clock() + WAIT_MS_MAX;
  for (;;) {
    const lease = await eventLog.store.leases.acquire(LEASE, { holder, ttlMs: LEASE_TTL_MS });
    if (lease !== undefined) return lease;
    if (stopping.aborted || clock() > giveUpAt)
      throw new SocialError("unavailable", "another process holds the tokens");
    await sleep(LEASE_POLL_MS, stopping);
  }
}

/**
 * Until the signal aborts. Answers the lease as it is held then: one that ran out while this process stood still is taken
 * anew, so that nobody uses the refresh token beside a request under way; what was fenced by the old one is refused all
 * the same.
 */
async function keepRenewed({ eventLog, sleep, holder, logger }: TokenLeaseDeps, lease: Lease, done: AbortSignal) {
  let held = lease;
  for (;;) {
    await sleep(LEASE_RENEW_MS, done);
    if (done.aborted) return held;
    try {
      held = (await eventLog.store.leases.acquire(LEASE, { holder, ttlMs: LEASE_TTL_MS })) ?? held;
    } catch (fault) {
      // One that fails is not the last: the next one still comes in time.
      logger.error("the tokens' lease could not be renewed", errorFields(fault));
    }
  }
}

/** A lease that cannot be given back runs out; what was done under it stands. */
async function release({ eventLog, logger }: TokenLeaseDeps, lease: Lease): Promise<void> {
  try {
    await eventLog.store.leases.release(lease);
  } catch (fault) {
    logger.error("the tokens' lease could not be released", errorFields(fault));
  }
}
