// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { StoreClosed } from "eventstore-lite";
import { StoreFull } from "eventstore-lite/testing";
import type { Runner, Triggered } from "../../src/outreach/start-run.ts";
import { openOutreach } from "../harness/in-process/simulated-outreach-processes.ts";

const trigger = (runner: Runner): Promise<Triggered> =>
  runner.trigger({ dryRun: false, metadata: { caller: "tests" } });

/**
 * Checks that one of several simultaneous requests for a run starts it, and that the other answers name the same run.
 */
async function expectOneRun(triggered: readonly Triggered[]): Promise<void> {
  const started = triggered.filter((one) => one.kind === "started");
  expect(started).toHaveLength(1);
  const [run] = started;
  for (const other of triggered.filter((one) => one !== run)) {
    expect(other).toEqual({ kind: "running", run_id: run?.run_id });
  }
  expect(await run?.done).toMatchObject({ reason: "completed", sent: 3 });
}

test("a trigger during a run is answered with that run's id, and a later one starts another", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { runner } = await world.start();
  const first = await trigger(runner);
  await expectOneRun([first, await trigger(runner)]);
  expect(await trigger(runner)).toMatchObject({ kind: "started" });
});

test("triggers at the same moment start one run", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { runner } = await world.start();
  await expectOneRun(await Promise.all([trigger(runner), trigger(runner), trigger(runner)]));
  expect(world.network.accepted).toHaveLength(3);
});

test("triggers of two processes at the same moment start one run", async () => {
  await using world = await openOutreach("10", "11", "12");
  const [one, other] = [await world.start(), await world.start()];
  await expectOneRun(await Promise.all([trigger(one.runner), trigger(other.runner)]));
  expect(world.network.accepted).toHaveLength(3);
});

test("a trigger that the log refuses does not block the next one", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { context, runner } = await world.start();
  const { store } = context.eventLog;
  const { append } = store;
  Object.assign(store, { append: () => Promise.reject(new StoreFull()) });
  expect(await trigger(runner).catch((fault: unknown) => fault)).toBeInstanceOf(StoreFull);
  Object.assign(store, { append });
  await expectOneRun([await trigger(runner)]);
});

test("a stop ends the run between two messages, and the next run sends the rest", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { runner } = await world.start({
    network: {
      ...world.network,
      sendDm: (token, id, text) => {
        stopping ??= runner[Symbol.asyncDispose]();
        return world.network.sendDm(token, id, text);
      },
    },
  });
  let stopping: PromiseLike<void> | undefined;
  const triggered = await trigger(runner);
  expect(triggered.kind === "started" && (await triggered.done)).toMatchObject({ reason: "stopped", sent: 1 });
  await stopping;
  expect(await world.events("RunFinished")).toMatchObject([{ data: { reason: "stopped", sent: 1 } }]);
  expect(await trigger(runner).catch((fault: unknown) => fault)).toBeInstanceOf(StoreClosed);

  const { run } = await world.start();
  expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
});

test("a stop waits for a trigger in progress", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { runner } = await world.start();
  let isAnswered = false;
  const triggering = trigger(runner).finally(() => {
    isAnswered = true;
  });
  await runner[Symbol.asyncDispose]();
  expect(isAnswered).toBe(true);
  const [started, ended] = [await world.events("RunStarted"), await world.events("RunFinished")];
  expect(ended).toHaveLength(started.length);
  const triggered = await triggering;
  expect(triggered.kind === "started" && (await triggered.done)).toMatchObject({ reason: "stopped", sent: 0 });
});

test("a run that takes too long ends with time_limit", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { run } = await world.start({ runMaxMs: 30 * 60_000, spacingMs: 20 * 60_000 });
  expect(await run()).toMatchObject({ reason: "time_limit", sent: 2 });
});

test("a single failed renewal of the lease does not end the run", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { leases } = world.store;
  let asked = 0;
  const acquire: typeof leases.acquire = (...lease) => {
    asked += 1;
    // The run's first call takes the lease, the second renews it before the first message. The third call, while the
    // run waits for its second message, fails.
    return asked === 3 ? Promise.reject(new Error("database is locked")) : leases.acquire(...lease);
  };
  Object.assign(world.store, { leases: { ...leases, acquire } });
  const { run } = await world.start({ spacingMs: 15_000 });
  expect(await run()).toMatchObject({ reason: "completed", sent: 3, failed: 0 });
  expect(asked).toBeGreaterThan(3);
});
