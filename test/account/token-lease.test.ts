// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { createTokenLease } from "../../src/account/tokens.ts";
import { nextTurn, openAccount, type AccountHarness } from "../harness/in-process/simulated-oauth-account.ts";
import { toLogContext } from "../harness/in-process/temporary-log.ts";
import type { LogContext } from "../../src/log/event-log.ts";

const RENEW_MS = 5_000;
/** Time after which the lease has expired if its holder did not renew it. */
const EXPIRED_MS = 15_001;
/** Duration of the slowest request for tokens, longer than the lease lasts without a renewal. */
const SLOW_MS = 30_000;

/**
 * Creates the queue of the process `holder`. The queue takes the lease on the tokens and does its jobs one after the
 * other while it holds it. `leases` overrides methods of the store's leases.
 */
function queueOf(world: AccountHarness, holder: string, leases: Partial<EventStore["leases"]> = {}) {
  const { eventLog } = world;
  const store = { ...eventLog.store, leases: { ...eventLog.store.leases, ...leases } };
  const times: Partial<LogContext> = {
    clock: () => world.now,
    wallClock: () => world.now,
    async sleep(ms, signal) {
      const until = ms < RENEW_MS ? 0 : world.now + ms;
      do await nextTurn();
      while (world.now < until && !signal.aborted);
    },
  };
  return createTokenLease(toLogContext({ ...eventLog, store }, { ...times, holder }));
}

const DEAD = new Error("database is locked");

/**
 * Advances the clock through a slow request and waits for a renewal of the lease at each interval. `renewed` returns
 * the number of attempted renewals.
 */
async function passSlowly(world: AccountHarness, renewed: () => number): Promise<void> {
  for (let passed = 0; passed < SLOW_MS; passed += RENEW_MS) {
    const before = renewed();
    world.now += RENEW_MS;
    while (renewed() === before) await nextTurn();
  }
}

test("a failed renewal is retried, and no other process acquires the lease", async () => {
  await using world = await openAccount();
  const { leases } = world.eventLog.store;
  let tried = 0;
  const flaky = queueOf(world, "one", {
    async acquire(...asked) {
      // The first attempt takes the lease. Of the later ones, some get no lease and some fail.
      const lease = tried % 3 === 1 ? undefined : await leases.acquire(...asked);
      tried += 1;
      if (tried % 3 === 2) throw DEAD;
      return lease;
    },
  });
  const other = queueOf(world, "two");
  const order: string[] = [];
  const done = await flaky.run(async () => {
    const waiting = other.run(async () => order.push("other"));
    await passSlowly(world, () => tried);
    order.push("first");
    return { waiting };
  });
  await done.waiting;
  expect(order).toEqual(["first", "other"]);
});

test("a lease that expired during a suspension is acquired again, and released at the end", async () => {
  await using world = await openAccount();
  const { leases } = world.eventLog.store;
  const taken: unknown[] = [];
  const stopped = queueOf(world, "one", {
    async acquire(...asked) {
      const lease = await leases.acquire(...asked);
      taken.push(lease);
      return lease;
    },
  });
  const tokens: (number | undefined)[] = [];
  const seenByOthers = async (): Promise<void> => {
    tokens.push((await leases.acquire("account-tokens", { holder: "two", ttlMs: 1 }))?.token);
  };
  await stopped.run(async () => {
    world.now += EXPIRED_MS;
    while (taken.length < 2) await nextTurn();
    await seenByOthers();
  });
  await seenByOthers();
  expect(tokens).toEqual([undefined, 3]);
});

test("a failed release does not undo the work", async () => {
  await using world = await openAccount();
  const queue = queueOf(world, "one", { release: () => Promise.reject(DEAD) });
  expect(await queue.run(async () => "stored")).toBe("stored");
});

test("failed work does not block the next", async () => {
  await using world = await openAccount();
  const queue = queueOf(world, "one");
  const failed = queue.run(() => Promise.reject(DEAD)).catch((fault: unknown) => fault);
  expect([await failed, await queue.run(async () => "next")]).toEqual([DEAD, "next"]);
});
