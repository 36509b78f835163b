// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { findLiving, joinInstances, type Instance } from "../../src/log/instance-heartbeats.ts";
import { openMemoryLog, SILENT, toLogContext } from "../harness/in-process/temporary-log.ts";

const SETTINGS = { DAILY_LIMIT: "100", QUOTA_TIMEZONE: "UTC", MESSAGE_TEMPLATE: "none" };

function instance(id: string, settings: Partial<typeof SETTINGS> = {}): Instance {
  const started_at = "2026-03-01T08:00:00.000Z";
  const all = { ...SETTINGS, ...settings };
  return { id, url: `http://${id}:3000`, version: "1.2.3", started_at, configuration: "c", settings: all };
}

/** Opens a log that instances join, on a clock that the test moves; the instances sleep by that clock. */
async function openWorld() {
  const log = await openMemoryLog();
  let now = 0;
  let sleepers: { readonly until: number; readonly wake: () => void }[] = [];
  const warned: string[] = [];
  const sleep = (ms: number, signal: AbortSignal): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => resolve());
    if (signal.aborted) resolve();
    sleepers.push({ until: now + ms, wake: resolve });
    return promise;
  };
  const logger = { ...SILENT, warn: (message: string) => void warned.push(message) };
  let away: Error | undefined;
  const snapshots: typeof log.store.snapshots = {
    ...log.store.snapshots,
    save: (...args) => (away === undefined ? log.store.snapshots.save(...args) : Promise.reject(away)),
  };
  const eventLog = { ...log.eventLog, store: { ...log.store, snapshots } };
  const time = { elapsedMs: () => now, sleep };
  const context = toLogContext(eventLog, { ...time, logger });
  return {
    warned,
    join: (id: string, settings: Partial<typeof SETTINGS> = {}) => joinInstances(context, instance(id, settings)),
    find: () => findLiving(eventLog.store, time),
    /** Stores the row that an instance leaves in the log when it is killed. */
    leaveDead: (id: string, settings: Partial<typeof SETTINGS> = {}) =>
      snapshots.save(`instance/${id}`, { version: 7, position: 0, state: JSON.stringify(instance(id, settings)) }),
    refuse: (fault: Error | undefined) => (away = fault),
    /** Lets time pass second by second; each instance that wakes finishes its work before the next second. */
    async pass(seconds: number) {
      for (let second = 0; second < seconds; second++) {
        now += 1_000;
        const due = sleepers.filter(({ until }) => until <= now);
        sleepers = sleepers.filter(({ until }) => until > now);
        for (const { wake } of due) wake();
        // Leaves time for a few round trips through the writer thread.
        for (let trip = 0; trip < 4; trip++) {
          await snapshots.remove(["none"]);
          await new Promise(setImmediate);
        }
      }
    },
    [Symbol.asyncDispose]: () => log[Symbol.asyncDispose](),
  };
}

const idsOf = ({ live }: { readonly live: readonly Instance[] }) => live.map(({ id }) => id);

test("instances see each other, and a stopped one disappears at the next heartbeat", async () => {
  await using world = await openWorld();
  await using a = await world.join("a");
  {
    await using b = await world.join("b");
    expect(idsOf(b)).toEqual(["b", "a"]);
    await world.pass(10);
    expect(idsOf(a)).toEqual(["a", "b"]);
    expect([a.isOldest(), b.isOldest()]).toEqual([true, false]);
  }
  await world.pass(10);
  expect(idsOf(a)).toEqual(["a"]);
});

test("the next instance becomes the oldest when the oldest stops", async () => {
  await using world = await openWorld();
  const a = await world.join("a");
  await using b = await world.join("b");
  await a[Symbol.asyncDispose]();
  await world.pass(10);
  expect(b.isOldest()).toBe(true);
});

test("a killed instance is listed for at least 29 s and at most 40 s", async () => {
  await using world = await openWorld();
  await world.leaveDead("b");
  await using a = await world.join("a");
  await world.pass(29);
  expect(idsOf(a)).toEqual(["a", "b"]);
  await world.pass(11);
  expect(idsOf(a)).toEqual(["a"]);
});

test("an instance that was only paused is listed again", async () => {
  await using world = await openWorld();
  await using a = await world.join("a");
  await world.leaveDead("b");
  await world.pass(60);
  expect(idsOf(a)).toEqual(["a"]);
  await world.leaveDead("b");
  await world.pass(10);
  expect(idsOf(a)).toEqual(["a", "b"]);
});

test.each([
  ["DAILY_LIMIT", "50", "DAILY_LIMIT is 50 at http://b:3000 (instance b), and 100 at http://a:3000 (instance a)"],
  ["QUOTA_TIMEZONE", "Europe/Berlin", "QUOTA_TIMEZONE is Europe/Berlin at http://b:3000"],
  ["MESSAGE_TEMPLATE", "the text 0123456789ab", "MESSAGE_TEMPLATE is the text 0123456789ab at http://b:3000"],
])("a start with a different %s from a living instance is refused with both values", async (name, value, sentence) => {
  await using world = await openWorld();
  await using a = await world.join("a");
  const refused = world.join("b", { [name]: value }).catch((fault: unknown) => fault);
  await world.pass(11);
  expect(await refused).toMatchObject({ kind: "configuration", message: expect.stringContaining(sentence) });
  await world.pass(10);
  expect(idsOf(a)).toEqual(["a"]);
});

test("two instances with different settings that start at once do not both join", async () => {
  await using world = await openWorld();
  const starts = ["a", "b"].map((id) =>
    world.join(id, { DAILY_LIMIT: id === "a" ? "100" : "50" }).then(
      () => "joined",
      () => "refused",
    ),
  );
  await world.pass(40);
  expect((await Promise.all(starts)).filter((end) => end === "joined").length).toBeLessThan(2);
});

test("a killed instance with different settings delays a start but does not prevent it", async () => {
  await using world = await openWorld();
  await world.leaveDead("a", { DAILY_LIMIT: "50" });
  const starting = world.join("b");
  await world.pass(31);
  await using b = await starting;
  expect(idsOf(b)).toEqual(["b"]);
});

test("an instance continues with one warning while its heartbeats fail", async () => {
  await using world = await openWorld();
  await using a = await world.join("a");
  world.refuse(new Error("away"));
  await world.pass(20);
  // Two heartbeats in a row failed, but only one warning was logged.
  expect(world.warned).toEqual(["a heartbeat failed"]);
  expect(idsOf(a)).toEqual(["a"]);
});

test("a command finds a living service and ignores a killed one", async () => {
  await using world = await openWorld();
  expect(await world.find()).toBeUndefined();
  await world.leaveDead("a");
  const dead = world.find();
  await world.pass(32);
  expect(await dead).toBeUndefined();
  await using b = await world.join("b");
  const living = world.find();
  await world.pass(12);
  expect((await living)?.id).toBe(idsOf(b)[0]);
});
