// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { openSqliteStore } from "eventstore-lite";
import { codec } from "../../events/event-types-and-codec.ts";
import { deliveries, isSettled, type Deliveries, pendingOf } from "../../projections/deliveries.ts";
import type { DispatchResult } from "../../src/networks/network.ts";
import { countCases } from "../harness/case-count.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { DELIVERED, fakeChannel, IN_DOUBT, REFUSED, UNAVAILABLE } from "../harness/in-process/fake-channel.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { eventually, openDelivery, type DeliveryHarness } from "../harness/in-process/delivery.ts";

/** fast-check generator of the course of a dispatch: the number of failed attempts, then its end. */
const fate = fc.record({
  failures: fc.constantFrom(0, 0, 0, 1, 2),
  end: fc.constantFrom<DispatchResult>(DELIVERED, DELIVERED, DELIVERED, REFUSED, IN_DOUBT),
});

test("a restart at any point loses no pending dispatch and resends no settled one", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fate, { minLength: 1, maxLength: 30 }), fc.nat(40), async (fates, stopAfter) => {
      const file = newLogFile();
      // The network runs on when the service restarts, so both starts of the service use this one channel.
      const order: string[] = [];
      const chat = fakeChannel("chat", ({ id }, attempt) => {
        if (!order.includes(id)) order.push(id);
        const { failures = 0, end = DELIVERED } = fates[order.indexOf(id)] ?? {};
        return attempt <= failures ? UNAVAILABLE : end;
      });
      const ended = async (of: number): Promise<void> => {
        await using house = await openDelivery({ file, channels: [chat] });
        house.time.flow();
        if (of > 0) await house.clicks(of);
        // Stops the service when some dispatches are settled, some wait for their retry, and some were not tried yet.
        await (of > 0 ? chat.until(Math.min(stopAfter, of)) : house.settled());
      };
      await ended(fates.length);
      await ended(0);
      await using house = await openDelivery({ file });
      const outcomes = await house.outcomes("DispatchSucceeded", "DispatchInDoubt", "DispatchAbandoned");
      const ids = new Map((await house.events("LinkClicked")).map(({ position, id }) => [position, id]));
      expect(outcomes.map(({ data }) => data.source).toSorted((a, b) => a - b)).toEqual([...ids.keys()]);
      const sends = (id: string) => chat.sent.filter((one) => one.id === id).length;
      expect(order.map(sends)).toEqual(fates.map(({ failures }) => failures + 1));
      for (const { data } of outcomes) expect(data.attempt).toBe(sends(ids.get(data.source) ?? ""));
    }),
    { numRuns: countCases(40) },
  );
});

test("a waiting retry keeps its attempt count and time after a restart", async () => {
  const file = newLogFile();
  const chat = fakeChannel("chat", (_dispatch, attempt) =>
    chat.sent.length === 1 || (attempt === 2 && chat.sent.length === 302) ? UNAVAILABLE : DELIVERED,
  );
  {
    await using house = await openDelivery({ file, channels: [chat] });
    await house.clicks(301);
    await eventually(house.projector, () => pendingOf(house.projector.state("deliveries").chat) === 1);
  }
  expect(chat.sent.length).toBe(301);
  await using house = await openDelivery({ file, channels: [chat] });
  const { clicks } = house.projector.state("deliveries").chat.lanes;
  // The oldest click waits for its retry. Such a click does not hold the low watermark back, so nearly all others lie
  // below the watermark and the state is small.
  expect(clicks.low_watermark).toBeGreaterThan(250);
  expect(clicks.above.size + clicks.retries.size).toBeLessThanOrEqual(16);
  expect(isSettled(clicks, 1)).toBe(false);
  expect(await house.time.armed()).toBe(1_000);
  expect(chat.sent.length).toBe(301);
  house.time.flow();
  await house.settled();
  expect(chat.sent.slice(301).map(({ id }) => id)).toEqual([chat.sent[0]?.id ?? "", chat.sent[0]?.id ?? ""]);
  expect((await house.outcomes("DispatchFailed")).map(({ data }) => data.attempt)).toEqual([1, 2]);
});

test("dispatches to an unconfigured channel are delivered once it is configured", async () => {
  const file = newLogFile();
  {
    await using house = await openDelivery({ file });
    await house.clicks(3, ["chat"]);
  }
  const chat = fakeChannel("chat");
  await using house = await openDelivery({ file, channels: [chat] });
  await house.settled();
  expect(chat.sent.length).toBe(3);
});

test("dispatches that a wrong state marks as settled are delivered after a rebuild", async () => {
  const file = newLogFile();
  const chat = fakeChannel("chat");
  {
    await using house = await openDelivery({ file });
    await house.clicks(3, ["chat"]);
    const state = structuredClone(house.projector.state("deliveries"));
    Object.assign(state.chat.lanes.clicks, { pending: 0, low_watermark: 4 });
    await house.eventLog.store.snapshots.save(
      "rebuilt/deliveries",
      snapshotOf(house, house.projector.state("deliveries")),
    );
    await house[Symbol.asyncDispose]();
    await using store = await openSqliteStore({ file, codec });
    await store.snapshots.save("deliveries", { version: deliveries.version, position: 3, state: encodeState(state) });
  }
  await using house = await openDelivery({ file, channels: [chat] });
  await house.settled();
  expect(chat.sent).toHaveLength(0);

  const rebuilt = { projection: "deliveries", version: deliveries.version, position: 3, differences: 2 };
  await house.append({ type: "ProjectionRebuilt", data: rebuilt });
  await house.settled();
  expect(new Set(chat.sent.map(({ id }) => id)).size).toBe(3);
  expect(chat.sent).toHaveLength(3);
});

function snapshotOf(house: DeliveryHarness, state: Deliveries) {
  return { version: deliveries.version, position: house.projector.position, state: encodeState(state) };
}
