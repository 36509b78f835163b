// On the memory harness.
import { describe, expect, test } from "bun:test";
import type { EventType } from "../../events/catalog.ts";
import { requestStop, type StopRequested } from "../../src/outreach/run-end.ts";
import { findTransientEnd } from "../../src/outreach/run-end.ts";
import { openOutreach, type OutreachHarness } from "../harness/memory/outreach.ts";

const METADATA = { caller: "ann" };

type Instance = Awaited<ReturnType<OutreachHarness["start"]>>;

/** Requests a stop on one instance as soon as another sees an event of the type. */
function stopAt(type: EventType, seenBy: Instance, asked: Instance): Promise<StopRequested> {
  return new Promise((resolve, reject) => {
    const unlisten = seenBy.projector.listen((event) => {
      if (event.type !== type) return;
      unlisten();
      requestStop(asked.context, undefined, METADATA).then(resolve, reject);
    });
  });
}

describe("a run that is asked to stop", () => {
  test("ends in the middle of a wait of 15 minutes, also when another instance is asked", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push({ waitMs: 15 * 60_000 });
    const [one, other] = [await world.start(), await world.start()];
    const from = world.time.now();
    const stopping = stopAt("RunPaused", one, other);
    const report = await one.run();
    expect(await stopping).toEqual({ kind: "stopping", run_id: report.run_id });
    expect(report).toMatchObject({ reason: "stopped", sent: 0, failed: 1 });
    expect(world.time.now()).toBeLessThan(from + 15 * 60_000);
    expect(world.network.asked).toEqual(["10"]);
    expect(await world.events("RunStopRequested")).toMatchObject([
      { stream: "outreach", data: { run_id: report.run_id }, meta: { caller: "ann" } },
    ]);
    expect(await world.events("DirectMessageFailed")).toMatchObject([
      { data: { reason: "withdrawn", frees_quota: true, retry: true } },
    ]);
  });

  test("lets the message in flight go, records that it was sent, and sends no other", async () => {
    await using world = await openOutreach("10", "11", "12");
    const instance: Instance = await world.start({
      network: {
        ...world.network,
        async sendDm(token, id, text) {
          await requestStop(instance.context, undefined, METADATA);
          return world.network.sendDm(token, id, text);
        },
      },
    });
    expect(await instance.run()).toMatchObject({ reason: "stopped", sent: 1, failed: 0 });
    expect(world.network.asked).toEqual(["10"]);
  });

  test("sends nothing where the request came before the last look", async () => {
    await using world = await openOutreach("10", "11", "12");
    const [one, other] = [await world.start(), await world.start()];
    const stopping = stopAt("DirectMessageAttempted", one, other);
    expect(await one.run()).toMatchObject({ reason: "stopped", sent: 0, failed: 1 });
    expect(await stopping).toMatchObject({ kind: "stopping" });
    expect(world.network.asked).toEqual([]);
  });

  test("leaves the rest to the next run, which the request does not stop, and frees its idempotency key", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push({ waitMs: 15 * 60_000 });
    const instance = await world.start();
    void stopAt("RunPaused", instance, instance);
    const stopped = await instance.run();
    expect(await findTransientEnd(world.store, stopped.run_id)).toEqual({ places: 0 });
    expect(await requestStop(instance.context, stopped.run_id, METADATA)).toEqual({ kind: "not_in_progress" });
    expect(await instance.run()).toMatchObject({ reason: "completed", sent: 3 });
  });

  test("may be a dry run, which then says what it had found", async () => {
    await using world = await openOutreach("10", "11", "12");
    const [one, other] = [await world.start(), await world.start()];
    void stopAt("RunStarted", one, other);
    const { reason, preview } = await one.run({ dryRun: true });
    expect([reason, preview?.would_send]).toEqual(["stopped", []]);
  });
});

test("without a run in progress there is nothing to stop, and nothing is recorded", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { context } = await world.start();
  expect(await requestStop(context, undefined, METADATA)).toEqual({ kind: "not_in_progress" });
  expect(await world.events("RunStopRequested")).toEqual([]);
});
