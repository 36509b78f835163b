// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { StoreFull } from "eventstore-lite/testing";
import { deliveries } from "../../projections/deliveries.ts";
import { encodeState } from "../../projections/encode-state.ts";
import type { NewEvent, EventLog } from "../../src/log/event-log.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { DELIVERED, fakeChannel, gate, UNAVAILABLE } from "../harness/in-process/fake-channel.ts";
import { NOTIFY, openDelivery, type DeliveryHarness } from "../harness/in-process/delivery.ts";

/**
 * After each of these events, the dispatcher reads its lanes (queues) from the log again. An entry holds words for the
 * test's name, and a function that returns the event to append.
 */
const REOPENINGS: readonly [string, (house: DeliveryHarness) => Promise<NewEvent>][] = [
  ["a recipient is forgotten", () => Promise.resolve({ type: "PersonForgotten", data: { hashes: [], keys: [] } })],
  [
    "personal data expires",
    () => Promise.resolve({ type: "PersonalDataExpired", data: { before: "2026-11-01", days: 1 } }),
  ],
  [
    "the deliveries are rebuilt",
    async ({ eventLog, projector }) => {
      const { position } = projector;
      const state = encodeState(projector.state("deliveries"));
      await eventLog.store.snapshots.save("rebuilt/deliveries", { version: deliveries.version, position, state });
      const data = { projection: "deliveries", version: deliveries.version, position, differences: 0 };
      return { type: "ProjectionRebuilt", data };
    },
  ],
];

/** Simulates a log on a full disk: it refuses each append until the test sets `isFull` to false. */
function fullDisk() {
  const disk = { isFull: true };
  const wrap = (eventLog: EventLog): EventLog => ({
    ...eventLog,
    append: (...args) => (disk.isFull ? Promise.reject(new StoreFull()) : eventLog.append(...args)),
  });
  return { disk, wrap };
}

describe.each(REOPENINGS)("when %s while a full disk delays outcomes", (_name, reopening) => {
  test("no delivered dispatch is resent, and each is recorded once there is room", async () => {
    const { disk, wrap } = fullDisk();
    const chat = fakeChannel("chat");
    await using house = await openDelivery({ channels: [chat], wrap });
    const notified = await house.append(NOTIFY);
    await house.clicks(5);
    await house.until(house.time.clock());
    const taken = chat.sent.length;
    expect(taken).toBeGreaterThan(2);
    await house.append(await reopening(house));
    await house.until(house.time.clock());
    disk.isFull = false;
    await house.until(house.time.clock() + 60_000);
    expect(chat.sent).toHaveLength(6);
    expect(new Set(chat.sent.map(({ id }) => id)).size).toBe(6);
    const ends = await house.outcomes("DispatchSucceeded");
    expect(ends.map(({ data }) => data.source).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 6 }, (_, at) => notified + at),
    );
  });

  test("a waiting retry is made exactly once", async () => {
    const { disk, wrap } = fullDisk();
    const chat = fakeChannel("chat", (_dispatch, attempt) => (attempt === 1 ? UNAVAILABLE : DELIVERED));
    await using house = await openDelivery({ channels: [chat], wrap, random: () => 0.999 });
    await house.clicks(1);
    await house.until(house.time.clock());
    await house.append(await reopening(house));
    disk.isFull = false;
    await house.until(house.time.clock() + 60_000);
    expect((await house.outcomes("DispatchFailed", "DispatchSucceeded")).map(({ data }) => data.attempt)).toEqual([
      1, 2,
    ]);
    expect(chat.sent).toHaveLength(2);
  });
});

test("a click in flight is not retried after its personal data is erased", async () => {
  const held = gate();
  const chat = fakeChannel("chat", (_dispatch, attempt) => (attempt === 1 ? held.answer : DELIVERED));
  const file = newLogFile();
  await using house = await openDelivery({ file, channels: [chat] });
  const position = await house.clicks(1);
  await chat.until(1);
  const read = house.eventLog.store.read.bind(house.eventLog.store);
  expect(position).toBe(1);
  // From now on the click has no personal data, as after its key was deleted.
  Object.assign(house.eventLog.store, {
    async *read(...args: Parameters<typeof read>) {
      for await (const event of read(...args)) {
        yield event.type === "LinkClicked" ? { ...event, meta: { ...event.meta, erased: true } } : event;
      }
    },
  });
  await house.append({ type: "PersonForgotten", data: { hashes: [], keys: [] } });
  await house.until(house.time.clock());
  held.open(UNAVAILABLE);
  await house.until(house.time.clock() + 60_000);
  expect(chat.sent).toHaveLength(1);
  expect((await house.outcomes("DispatchSkipped")).map(({ data }) => data.reason)).toEqual(["expired"]);
});
