// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { createRoles, type Role } from "../../src/log/leases-and-roles.ts";
import type { Logger } from "../../src/platform/logger.ts";
import { openMemoryLog, SILENT, type MemoryLog, toLogContext } from "../harness/in-process/temporary-log.ts";

const TERMS = { name: "role", ttlMs: 15_000, renewMs: 5_000 };

interface World extends MemoryLog {
  now: number;
  /** Beginnings and ends of the role at the instances, in the order in which they happened. */
  readonly happened: readonly string[];
  /** Starts an instance that may take the role. If `isAlone`, it is the only instance of the log. */
  start(holder: string, options?: StartOptions): Promise<Started>;
  /** Resolves once `happened` has `count` entries. */
  until(count: number): Promise<void>;
}

interface StartOptions {
  readonly isAlone?: boolean;
  readonly begin?: () => Promise<AsyncDisposable>;
  readonly logger?: Logger;
}

interface Started {
  readonly role: Role;
  /** Stops the timers of the instance. */
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
      const context = toLogContext(log.eventLog, {
        holder,
        wallClock: () => world.now,
        elapsedMs: () => world.now,
        async sleep(ms, signal) {
          const until = world.now + ms;
          while ((timers.areFrozen || world.now < until) && !signal.aborted) await nextTurn();
        },
        logger,
      });
      const roles = createRoles(context, isAlone);
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

test("one instance keeps the role while it lives", async () => {
  await using world = await openWorld();
  const one = await world.start("one");
  const two = await world.start("two");
  await pass(world, 60);
  expect(world.happened).toEqual(["one begins"]);
  expect([one.role.isHeld, two.role.isHeld]).toEqual([true, false]);
});

test("after an orderly stop the next instance begins within a second", async () => {
  await using world = await openWorld();
  const one = await world.start("one");
  await world.start("two");
  await one.role[Symbol.asyncDispose]();
  await pass(world, 1);
  await world.until(3);
  expect(world.happened).toEqual(["one begins", "one ends", "two begins"]);
});

test("a paused instance loses the role to another within 17 s", async () => {
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

test("an instance that was paused keeps the role if no other instance requests it", async () => {
  await using world = await openWorld();
  const one = await world.start("one");
  one.freeze();
  await pass(world, 60);
  one.thaw();
  await pass(world, 6);
  expect([world.happened, one.role.isHeld]).toEqual([["one begins"], true]);
});

test("only an owner of the whole log takes over from a dead holder at once", async () => {
  await using world = await openWorld();
  const dead = await world.start("dead");
  dead.freeze();
  await world.start("sharing");
  expect(world.happened).toEqual(["dead begins"]);
  await world.start("owning", { isAlone: true });
  expect(world.happened).toEqual(["dead begins", "owning begins"]);
});

test("another instance begins the role if the first fails to begin", async () => {
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

test("a refused lease is requested every second and logged once", async () => {
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
