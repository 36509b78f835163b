import { LeaseLost } from "eventstore-lite";
import { takeLease, type HeldLease, type LeaseDeps } from "../log/lease.ts";
import { ROLES } from "../log/role.ts";
import { SocialError } from "../networks/network.ts";
import type { Clock } from "../platform/clock.ts";
import { createSerialQueue } from "../platform/serial-queue.ts";

export interface TokenLeaseDeps extends LeaseDeps {
  readonly clock: Clock;
  /** Names this process in the lease. */
  readonly holder: string;
}

/**
 * Short, since no instance can refresh while a dead process's lease lasts. Renewed, since a token request may take longer,
 * and often enough that one renewal may fail.
 */
const TERMS = { name: ROLES.tokens, ttlMs: 15_000, renewMs: 5_000 };
const POLL_MS = 200;

/** Longer than a token request of another process takes, and than the lease of a dead one lasts. */
const WAIT_MS_MAX = 60_000;

/** To lose it more than once in a row takes more than a machine that slept. */
const TRIES_MAX = 3;

/** One piece of work at a time, over all processes. Disposing it waits for what is under way. */
export function createTokenLease(deps: TokenLeaseDeps) {
  const stopping = new AbortController();
  const oneByOne = createSerialQueue();
  return {
    /**
     * One after the other here, under a lease between processes. Starts again under a new lease when the work throws
     * LeaseLost: this process stood still, or its clock was moved. Throws a SocialError `unavailable` when the others take
     * too long, or when it loses the lease each time.
     */
    run: <T>(work: (lease: HeldLease) => Promise<T>): Promise<T> =>
      oneByOne(() => underLease(deps, work, stopping.signal)),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await oneByOne(async () => {});
    },
  };
}

async function underLease<T>(
  deps: TokenLeaseDeps,
  work: (lease: HeldLease) => Promise<T>,
  stopping: AbortSignal,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    await using lease = await waitForLease(deps, stopping);
    try {
      return await work(lease);
    } catch (fault) {
      if (!(fault instanceof LeaseLost)) throw fault;
      if (tried === TRIES_MAX) throw new SocialError("unavailable", "another process took the tokens over");
    }
  }
}

async function waitForLease(deps: TokenLeaseDeps, stopping: AbortSignal): Promise<HeldLease> {
  const { clock, sleep, holder } = deps;
  const giveUpAt = clock() + WAIT_MS_MAX;
  for (;;) {
    const lease = await takeLease(deps, { ...TERMS, holder });
    if (lease !== undefined) return lease;
    if (stopping.aborted || clock() > giveUpAt)
      throw new SocialError("unavailable", "another process holds the tokens");
    await sleep(POLL_MS, stopping);
  }
}
