// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { StoreFull } from "eventstore-lite/testing";
import type { Event } from "../../events/event-types-and-codec.ts";
import { openOutreach, RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { METADATA } from "../harness/in-process/temporary-log.ts";

const PEOPLE = ["10", "11", "12"];

/** Makes the log refuse all appends and leases, as on a full disk. The returned function makes it accept them again. */
function fill(store: EventStore<Event>): () => void {
  const { append, leases } = store;
  const full = (): Promise<never> => Promise.reject(new StoreFull());
  Object.assign(store, { append: full, leases: { acquire: full, release: full } });
  return () => Object.assign(store, { append, leases });
}

test("a run stopped by a full log is closed later, without a second message", async () => {
  await using world = await openOutreach(...PEOPLE);
  const { context, runner, projector, run } = await world.start();
  let free = (): unknown => undefined;
  const { sendDm } = world.network;
  world.network.sendDm = (token, id, text) => {
    // The network takes the second message, but its outcome cannot be recorded.
    if (id === "11") free = fill(context.eventLog.store);
    return sendDm(token, id, text);
  };
  const triggered = await runner.trigger({ dryRun: false, metadata: METADATA });
  expect(triggered.kind === "started" && (await triggered.done)).toBeUndefined();
  expect(world.network.accepted).toHaveLength(2);
  free();
  world.network.sendDm = sendDm;
  const closed = new AbortController();
  for await (const event of world.store.subscribe({ from: 1, types: ["RunAbandoned"], signal: closed.signal })) {
    expect(event.data).toMatchObject({ sent: 2, failed: 0 });
    closed.abort();
  }
  await projector.until((await world.store.head()).position);
  expect(projector.state("run").current).toBeNull();
  expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
  expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(PEOPLE);
});

test("a trigger that waits for the lease is refused if another run uses up the quota", async () => {
  await using world = await openOutreach(...PEOPLE);
  const limited = { rules: { ...RULES, dailyLimit: 2 } };
  const [one, other] = [await world.start(limited), await world.start(limited)];
  const { leases } = other.context.eventLog.store;
  const { acquire } = leases;
  Object.assign(leases, {
    acquire: async (...args: Parameters<typeof acquire>) => {
      Object.assign(leases, { acquire });
      expect(await one.run()).toMatchObject({ reason: "daily_limit_reached", sent: 2 });
      return acquire(...args);
    },
  });
  expect(await other.runner.trigger({ dryRun: false, metadata: METADATA })).toEqual({ kind: "daily_limit_reached" });
  expect(await world.events("RunStarted")).toHaveLength(1);
  // The refused trigger has released the lease, so another run can start. A dry run shows this, because it needs no
  // quota.
  expect(await other.runner.trigger({ dryRun: true, metadata: METADATA })).toMatchObject({ kind: "started" });
});
