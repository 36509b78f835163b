// On the memory harness.
import { expect, test } from "bun:test";
import { createRoles, type Role } from "../../src/log/lease.ts";
import type { Logger } from "../../src/platform/logger.ts";
import { openMemoryLog, SILENT, type MemoryLog } from "../harness/memory/log.ts";

const TERMS = { name: "role", ttlMs: 15_000, renewMs: 5_000 };

interface World extends MemoryLog {
  now: number;
  /** Begins and ends of the role, in order. */
  readonly happened: readonly string[];
  /** Starts an instance; it owns the log if `isAlone`. */
  start(holder: string, options?: StartOptions): Promise<Started>;
  /** Resolves once `count` entries have happened. */
  until(count: number): Promise<void>;
}

interface StartOptions {
  readonly isAlone?: boolean;
  readonly begin?: () => Promise<AsyncDisposable>;
  readonly logger?: Logger;
}

interface Started {
  readonly role: Role;
  /** Stops its timers. */
  freeze(): void;
  thaw(): void;
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function openWorld(): Promise<World> {
  const log = await openMemoryLog({ clock: () => world.now });
  const happened: string[] = [];
  const world: World = {
    ...log,
    now: 1_000_000,
    happened,
    async start(holder, { isAlone = false, begin, logger = SILENT } = {}) {
      const timers = { areFrozen: false };
      const roles = createRoles({
        eventLog: log.eventLog,
        holder,
        isAlone,
        wallClock: () => world.now,
        elapsedMs: () => world.now,
        async sleep(ms, signal) {
          const until = world.now + ms;
          while ((timers.areFrozen || world.now < until) && !signal.aborted) await nextTurn();
        },
        logger,
      });
      const role = await roles.start(
        TERMS,
        begin ??
          (async () => {
            happened.push(`${holder} begins`);
            return {
              async [Symbol.asyncDispose]() {
                await nextTurn();
                happened.push(`${holder} ends`);
              },
            };
          }),
      );
      return {
        role: log.use(role),
        freeze() {
          timers.areFrozen = true;
        },
        thaw() {
          timers.areFrozen = false;
        },
      };
    },
    async until(count) {
      while (happened.length < count) await nextTurn();
    },
  };
  return world;
}

/** Lets time pass second by second, so that each timer of the instances fires. */
async function pass(world: World, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    world.now += 1_000;
    for (let turn = 0; turn < 8; turn++) await nextTurn();
    await world.store.leases.acquire("turn", { holder: "test", ttlMs: 1 });
  }
}

test("one instance has it, for as long as it lives", async () => {
  await using world = await openWorld();
  const one = await world.start("one");
  const two = await world.start("two");
  await pass(world, 60);
  expect(world.happened).toEqual(["one begins"]);
  expect([one.role.isHeld, two.role.isHeld]).toEqual([true, false]);
});

test("an orderly stop hands it on: the next begins within a second, and not before the first has ended", async () => {
  await using world = await openWorld();
  const one = await world.start("one");
  await world.start("two");
  await one.role[Symbol.asyncDispose]();
  await pass(world, 1);
  await world.until(3);
  expect(world.happened).toEqual(["one begins", "one ends", "two begins"]);
});

test("of one that stands still it is taken over within 17 s, and when that goes on it has lost it", async () => {
  await using world = await openWorld();
  const one = await world.start("one");
  await world.start("two");
  one.freeze();
  await pass(world, 14);
  expect(world.happened).toEqual(["one begins"]);
  await pass(world, 3);
  await world.until(2);
  expect(world.happened).toEqual(["one begins", "two begins"]);
  one.thaw();
  await pass(world, 6);
  await world.until(3);
  expect([world.happened, one.role.isHeld]).toEqual([["one begins", "two begins", "one ends"], false]);
});

test("one that stood still while no other instance wanted it goes on", async () => {
  await using world = await openWorld();
  const one = await world.start("one");
  one.freeze();
  await pass(world, 60);
  one.thaw();
  await pass(world, 6);
  expect([world.happened, one.role.isHeld]).toEqual([["one begins"], true]);
});

test("the owner of the log takes it from the dead at once; an instance that shares the log waits", async () => {
  await using world = await openWorld();
  const dead = await world.start("dead");
  dead.freeze();
  await world.start("sharing");
  expect(world.happened).toEqual(["dead begins"]);
  await world.start("owning", { isAlone: true });
  expect(world.happened).toEqual(["dead begins", "owning begins"]);
});

test("what cannot begin is tried again, and another may be faster", async () => {
  await using world = await openWorld();
  let tries = 0;
  await world.start("one", {
    begin() {
      tries++;
      return Promise.reject(new Error("a full disk"));
    },
  });
  expect(tries).toBe(1);
  await world.start("two");
  expect(world.happened).toEqual(["two begins"]);
});

test("a log that refuses the lease is asked every second, however long it does, and complained of once", async () => {
  await using world = await openWorld();
  const { leases } = world.eventLog.store;
  const { acquire } = leases;
  Object.assign(leases, { acquire: () => Promise.reject(new Error("a full disk")) });
  const errors: string[] = [];
  const logger = { ...SILENT, error: (message: string) => errors.push(message) };
  await world.start("one", { logger });
  for (let second = 0; second < 30; second++) {
    world.now += 1_000;
    for (let turn = 0; turn < 8; turn++) await nextTurn();
  }
  expect(world.happened).toEqual([]);
  expect(errors).toEqual(["a role could not be requested"]);
  Object.assign(leases, { acquire });
  await pass(world, 1);
  expect(world.happened).toEqual(["one begins"]);
});
