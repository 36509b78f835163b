// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { EventType } from "../../events/event-types-and-codec.ts";
import { requestStop, type StopRequested } from "../../src/outreach/run-end-and-stop-request.ts";
import { findTransientEnd } from "../../src/outreach/run-end-and-stop-request.ts";
import { openOutreach, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";

const METADATA = { caller: "ann" };

type Instance = Awaited<ReturnType<OutreachHarness["start"]>>;

/** Asks one instance to stop the run as soon as another instance sees an event of this type. */
function stopAt(type: EventType, seenBy: Instance, asked: Instance): Promise<StopRequested> {
  return new Promise((resolve, reject) => {
    const unlisten = seenBy.projector.listen((event) => {
      if (event.type !== type) return;
      unlisten();
      requestStop(asked.context, undefined, METADATA).then(resolve, reject);
    });
  });
}

describe("a run with a stop request", () => {
  test("ends during a wait of 15 minutes, also if another instance receives the request", async () => {
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

  test("completes the message in flight, and sends no other", async () => {
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

  test("withdraws a message if the request arrives before the last check", async () => {
    await using world = await openOutreach("10", "11", "12");
    const [one, other] = [await world.start(), await world.start()];
    const stopping = stopAt("DirectMessageAttempted", one, other);
    expect(await one.run()).toMatchObject({ reason: "stopped", sent: 0, failed: 1 });
    expect(await stopping).toMatchObject({ kind: "stopping" });
    expect(world.network.asked).toEqual([]);
  });

  test("leaves the rest to the next run, and releases its idempotency key", async () => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push({ waitMs: 15 * 60_000 });
    const instance = await world.start();
    void stopAt("RunPaused", instance, instance);
    const stopped = await instance.run();
    expect(await findTransientEnd(world.store, stopped.run_id)).toEqual({ places: 0 });
    expect(await requestStop(instance.context, stopped.run_id, METADATA)).toEqual({ kind: "not_in_progress" });
    expect(await instance.run()).toMatchObject({ reason: "completed", sent: 3 });
  });

  test("can be a dry run, which reports its preview", async () => {
    await using world = await openOutreach("10", "11", "12");
    const [one, other] = [await world.start(), await world.start()];
    void stopAt("RunStarted", one, other);
    const { reason, preview } = await one.run({ dryRun: true });
    expect([reason, preview?.would_send]).toEqual(["stopped", []]);
  });
});

test("a stop request without a run in progress is refused and not recorded", async () => {
  await using world = await openOutreach("10", "11", "12");
  const { context } = await world.start();
  expect(await requestStop(context, undefined, METADATA)).toEqual({ kind: "not_in_progress" });
  expect(await world.events("RunStopRequested")).toEqual([]);
});
