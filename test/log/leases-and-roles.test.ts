// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { LeaseLost } from "eventstore-lite";
import { takeLease, type HeldLease } from "../../src/log/leases-and-roles.ts";
import { STREAMS, type NewEvent, type LogContext } from "../../src/log/event-log.ts";
import { METADATA, openMemoryLog, type MemoryLog, toLogContext } from "../harness/in-process/temporary-log.ts";

const TTL_MS = 15_000;
const TERMS = { name: "role", ttlMs: TTL_MS, renewMs: 5_000 };
const RUN: NewEvent = { type: "RunStarted", data: { run_id: "r", dry_run: true } };

interface World extends MemoryLog {
  /** Wall clock of the machine; `elapsed` is its monotonic clock. Both are in ms. */
  now: number;
  elapsed: number;
  take(holder: string, deps?: Partial<LogContext>): Promise<HeldLease | undefined>;
  /** Moves both clocks while no lease is renewed. */
  standStill(ms: number): void;
}

/** Opens a log whose leases are renewed only when a test says so. */
async function openWorld(): Promise<World> {
  const log = await openMemoryLog({ clock: () => world.now });
  const world: World = {
    ...log,
    now: 1_000_000,
    elapsed: 500,
    take: (holder, deps) =>
      takeLease(
        toLogContext(log.eventLog, {
          wallClock: () => world.now,
          elapsedMs: () => world.elapsed,
          sleep: (_ms, signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
          ...deps,
        }),
        { ...TERMS, holder },
      ),
    standStill(ms) {
      world.now += ms;
      world.elapsed += ms;
    },
  };
  return world;
}

async function held(world: World, holder = "one"): Promise<HeldLease> {
  const lease = await world.take(holder);
  if (lease === undefined) throw new Error("another holds it");
  return lease;
}

const appendUnder = (world: World, lease: HeldLease): Promise<unknown> =>
  lease.fenced((fence) => world.eventLog.append(STREAMS.outreach, [RUN], METADATA, fence));

const faultOf = (work: Promise<unknown>): Promise<unknown> => work.catch((fault: unknown) => fault);

test("a lease lasts for exactly its time to live", async () => {
  await using world = await openWorld();
  await using lease = await held(world);
  world.standStill(10_000);
  expect([lease.lasts(0), lease.lasts(4_999), lease.lasts(5_000)]).toEqual([true, true, false]);
  world.standStill(5_000);
  expect(lease.lasts(0)).toBe(false);
});

test("a lease lasts no longer if the wall clock stops, goes back or jumps ahead", async () => {
  await using world = await openWorld();
  await using lease = await held(world);
  world.elapsed += TTL_MS;
  expect(lease.lasts(0)).toBe(false);
  world.elapsed -= TTL_MS;
  world.now -= 1;
  expect(lease.lasts(0)).toBe(false);
  world.now += 1 + TTL_MS;
  expect(lease.lasts(0)).toBe(false);
  world.now -= TTL_MS;
  expect(lease.lasts(0)).toBe(true);
});

test("the time to live counts from before the request, however late the log answers", async () => {
  await using world = await openWorld();
  const { leases } = world.eventLog.store;
  const store = {
    ...world.eventLog.store,
    leases: {
      ...leases,
      async acquire(...asked: Parameters<typeof leases.acquire>) {
        const lease = await leases.acquire(...asked);
        world.standStill(TTL_MS);
        return lease;
      },
    },
  };
  await using lease = await world.take("one", { eventLog: { ...world.eventLog, store } });
  expect(lease?.lasts(0)).toBe(false);
});

test("an expired lease that is still free is renewed by the next append", async () => {
  await using world = await openWorld();
  await using lease = await held(world);
  world.standStill(4 * TTL_MS);
  expect(lease.lasts(0)).toBe(false);
  await appendUnder(world, lease);
  expect([lease.lasts(0), lease.lost.aborted]).toEqual([true, false]);
  expect(await world.events("RunStarted")).toHaveLength(1);
});

test("a lease that another holder had in between is lost and fences every append", async () => {
  await using world = await openWorld();
  await using lease = await held(world);
  world.standStill(TTL_MS);
  const other = await held(world, "two");
  expect(await faultOf(appendUnder(world, lease))).toBeInstanceOf(LeaseLost);
  await other[Symbol.asyncDispose]();
  expect(await faultOf(appendUnder(world, lease))).toBeInstanceOf(LeaseLost);
  expect([(await lease.keep(0))(), lease.lasts(0), lease.lost.aborted]).toEqual([false, false, true]);
  expect(await world.events("RunStarted")).toEqual([]);
});

test("a lease that another holder acquired and released unseen is lost", async () => {
  await using world = await openWorld();
  await using lease = await held(world);
  world.standStill(TTL_MS);
  await (await held(world, "two"))[Symbol.asyncDispose]();
  for (const _again of [1, 2]) expect(await faultOf(appendUnder(world, lease))).toBeInstanceOf(LeaseLost);
  expect(lease.lost.aborted).toBe(true);
});

test("a lease lasts for its remaining time while renewals fail", async () => {
  await using world = await openWorld();
  await using lease = await held(world);
  const { leases } = world.store;
  const { acquire } = leases;
  Object.assign(leases, { acquire: () => Promise.reject(new Error("no connection")) });
  world.standStill(10_000);
  const lasts = await lease.keep(2_000);
  expect(lasts()).toBe(true);
  world.standStill(3_000);
  expect([lasts(), lease.lost.aborted]).toEqual([false, false]);
  Object.assign(leases, { acquire });
  expect((await lease.keep(2_000))()).toBe(true);
});

test("the lease scale shortens the time to live", async () => {
  await using world = await openWorld();
  await using lease = await world.take("one", { leaseScale: 0.1 });
  world.standStill(900);
  expect([lease?.lasts(5_000), lease?.lasts(6_000)]).toEqual([true, false]);
  world.standStill(600);
  expect(lease?.lasts(0)).toBe(false);
  await using other = await world.take("two", { leaseScale: 0.1 });
  expect(other).toBeDefined();
});
