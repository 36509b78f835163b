// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { setImmediate } from "node:timers/promises";
import { StoreFull } from "eventstore-lite/testing";
import { openOutreach, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";
import { METADATA } from "../harness/in-process/temporary-log.ts";

/**
 * Starts a run whose process dies during its second request to send; `taken` if the network accepted that message
 * nevertheless. Returns the run's id.
 */
async function dieDuringSecond(world: OutreachHarness, taken: boolean): Promise<string | undefined> {
  const { sendDm } = world.network;
  const victim = await world.start();
  world.network.sendDm = (token, id, text) => {
    if (id !== "11") return sendDm(token, id, text);
    victim.die();
    world.network.sendDm = sendDm;
    return taken ? sendDm(token, id, text) : new Promise(() => {});
  };
  const triggered = await victim.runner.trigger({ dryRun: false, metadata: METADATA });
  await victim.dead;
  return "run_id" in triggered ? triggered.run_id : undefined;
}

test.each([
  ["counts as sent if the network accepted it", true, { sent: 2, failed: 0, in_doubt: 0 }],
  ["counts as failed if the network did not accept it", false, { sent: 1, failed: 1, in_doubt: 0 }],
] as const)("the message in flight of a dead run %s, and the run is closed", async (_what, taken, counts) => {
  await using world = await openOutreach("10", "11", "12");
  const runId = await dieDuringSecond(world, taken);
  const { runner, projector, run } = await world.start();
  expect(projector.state("run").current?.run_id).toBe(runId);

  await runner.recover({ steal: true });
  expect(await world.events("DirectMessageInDoubt")).toMatchObject([{ data: { recipient: { id: "11" } } }]);
  expect(await world.events("RunAbandoned")).toMatchObject([{ data: { run_id: runId, ...counts } }]);
  const told = await world.events("DirectMessageInDoubt", "DirectMessageSent", "DirectMessageFailed", "RunAbandoned");
  expect(told.at(-1)?.type).toBe("RunAbandoned");

  expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
  expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(
    taken ? ["10", "11", "12"] : ["10", "12"],
  );
  expect(projector.state("stats").sent).toBe(world.network.accepted.length);
});

test("a trigger returns a dead run's id while its lease lasts, and closes it afterwards", async () => {
  await using world = await openOutreach("10", "11", "12");
  const runId = await dieDuringSecond(world, true);
  const { runner, projector, run } = await world.start();
  const trigger = () => runner.trigger({ dryRun: false, metadata: METADATA });
  expect(await trigger()).toEqual({ kind: "running", run_id: runId });
  expect(await world.events("RunAbandoned")).toEqual([]);

  world.time.jump(31_000);
  expect(await trigger()).toEqual({ kind: "running", run_id: runId });
  while (projector.state("run").current !== null) await world.time.sleep(1_000, new AbortController().signal);
  expect(await world.events("RunAbandoned")).toMatchObject([{ data: { run_id: runId, sent: 2 } }]);
  expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
});

test("a process with lagging projections starts no second run over a dead one", async () => {
  await using world = await openOutreach("10", "11", "12");
  const runId = await dieDuringSecond(world, true);
  world.time.jump(31_000);
  const { projector } = await world.start();
  let hasCaughtUp = false;
  const run = { current: null, open: new Map(), version: 0 };
  const lagging = {
    ...projector,
    state: ((name) => (hasCaughtUp || name !== "run" ? projector.state(name) : run)) as typeof projector.state,
    async until(position: number) {
      await projector.until(position);
      hasCaughtUp = true;
    },
  };
  const { runner } = await world.start({ projector: lagging });
  expect(await runner.trigger({ dryRun: false, metadata: METADATA })).toEqual({ kind: "running", run_id: runId });
  expect(await world.events("RunStarted")).toHaveLength(1);
});

test("a delayed recovery does not abandon a run that has started since", async () => {
  await using world = await openOutreach("10", "11", "12");
  await world.append([{ type: "RunStarted", data: { run_id: "dead", dry_run: false } }]);
  const { context, runner, projector, run } = await world.start({ spacingMs: 20_000 });
  const { store } = context.eventLog;
  const { leases } = store;
  const failed = Promise.withResolvers<void>();
  const acquire = (): Promise<never> => {
    failed.resolve();
    return Promise.reject(new StoreFull());
  };
  Object.assign(store, { leases: { ...leases, acquire } });
  const recovering = runner.recover({ steal: true });
  await failed.promise;
  Object.assign(store, { leases });
  expect(await runner.trigger({ dryRun: false, metadata: METADATA })).toEqual({ kind: "running", run_id: "dead" });
  while (projector.state("run").current !== null) await setImmediate();
  expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  await recovering;
  expect(await world.events("RunAbandoned")).toMatchObject([{ data: { run_id: "dead" } }]);
});

test("a recovery without a dead run or a doubt reads and records nothing", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { runner } = await world.start();
  await runner.recover({ steal: true });
  expect(world.network.reads).toEqual([]);
  expect(await world.events("RunAbandoned")).toEqual([]);
});

/**
 * Lets an hour pass during the first request to send, as if the machine were suspended. At the end of the hour,
 * `meanwhile` plays what other processes do.
 */
function suspendIn(world: OutreachHarness, meanwhile: () => Promise<void>): void {
  const { sendDm } = world.network;
  world.network.sendDm = async (...message) => {
    world.network.sendDm = sendDm;
    world.time.jump(3_600_000);
    await meanwhile();
    return sendDm(...message);
  };
}

test("a process that loses its lease to another ends its run, recorded as abandoned", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { leases } = world.store;
  suspendIn(world, async () => {
    const lease = await leases.acquire("run", { holder: "another", ttlMs: 30_000 });
    if (lease !== undefined) await leases.release(lease);
  });
  const { runner, projector, run } = await world.start();
  const triggered = await runner.trigger({ dryRun: false, metadata: METADATA });
  expect(triggered.kind === "started" && (await triggered.done)).toBeUndefined();
  while (projector.state("run").current !== null) await world.time.sleep(1_000, new AbortController().signal);
  expect(await world.events("RunAbandoned")).toMatchObject([{ data: { sent: 1 } }]);
  expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
  expect(world.network.accepted).toHaveLength(3);
});

test("a process continues its run after a long suspension if no other took the lease", async () => {
  await using world = await openOutreach("10", "11", "12");
  suspendIn(world, async () => {});
  const { run } = await world.start();
  expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  expect(await world.events("RunAbandoned")).toEqual([]);
});

test("an outcome that another process has settled is not recorded again by a slow one", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { sendDm } = world.network;
  const answer = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const slow = await world.start({
    network: {
      ...world.network,
      sendDm: async (...message) => {
        const result = await sendDm(...message);
        asked.resolve();
        await answer.promise;
        return result;
      },
    },
  });
  const triggered = await slow.runner.trigger({ dryRun: false, metadata: METADATA });
  await asked.promise;
  const { runner } = await world.start();
  await runner.recover({ steal: true });
  answer.resolve();
  expect(triggered.kind === "started" && (await triggered.done)).toBeUndefined();
  expect(await world.events("DirectMessageSent", "DirectMessageFailed")).toMatchObject([
    { data: { recipient: { id: "10" }, settled_by: "lookup" } },
  ]);
  expect(world.network.asked).toEqual(["10"]);
});
