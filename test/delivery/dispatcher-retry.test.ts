// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { StoreFull } from "eventstore-lite/testing";
import type { Circuit } from "../../src/delivery/pace-and-circuit-breaker.ts";
import { DISPATCH_ATTEMPTS_MAX } from "../../src/delivery/attempt-outcome.ts";
import type { EventLog } from "../../src/log/event-log.ts";
import type { DispatchResult } from "../../src/networks/network.ts";
import {
  DELIVERED,
  fakeChannel,
  gate,
  IN_DOUBT,
  REFUSED,
  throttled,
  UNAVAILABLE,
} from "../harness/in-process/fake-channel.ts";
import { eventually, NOTIFY, openDelivery, type DeliveryHarness } from "../harness/in-process/delivery.ts";
import { fakeTime } from "../harness/in-process/fake-time.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";

const HOUR_MS = 3_600_000;

test("a failed dispatch is retried at its time, not earlier", async () => {
  const chat = fakeChannel("chat", (_dispatch, attempt) => (attempt < 3 ? UNAVAILABLE : DELIVERED));
  await using house = await openDelivery({ channels: [chat] });
  await house.clicks(1);
  for (const [attempt, ceiling] of [
    [1, 2_000],
    [2, 6_400],
  ] as const) {
    expect(await house.time.armed()).toBe(ceiling / 2);
    expect(chat.sent.length).toBe(attempt);
    house.time.ring();
    await chat.until(attempt + 1);
  }
  await house.settled();
  const outcomes = await house.outcomes("DispatchFailed", "DispatchSucceeded");
  expect(outcomes.map(({ type, data }) => [type, data.attempt])).toEqual([
    ["DispatchFailed", 1],
    ["DispatchFailed", 2],
    ["DispatchSucceeded", 3],
  ]);
});

test("a dispatch becomes a dead letter after eight attempts in about an hour", async () => {
  const chat = fakeChannel("chat", () => UNAVAILABLE);
  await using house = await openDelivery({ channels: [chat], random: () => 0.999 });
  const start = house.time.clock();
  house.time.flow();
  await house.clicks(1);
  await house.settled();
  expect(chat.sent.length).toBe(DISPATCH_ATTEMPTS_MAX);
  const [letter] = await house.outcomes("DispatchAbandoned");
  expect(letter?.data).toMatchObject({ attempt: 8, refused: false, status: 503, channel: "chat" });
  const took = house.time.clock() - start;
  expect(took).toBeGreaterThan(HOUR_MS * 0.75);
  expect(took).toBeLessThan(HOUR_MS * 1.1);
});

test.each([
  ["in doubt", IN_DOUBT, "DispatchInDoubt"],
  ["refused", REFUSED, "DispatchAbandoned"],
  ["skipped", { outcome: "skipped", reason: "too_old" }, "DispatchSkipped"],
] as const)("a dispatch that is %s is not retried", async (_name, result, type) => {
  const chat = fakeChannel("chat", () => result);
  await using house = await openDelivery({ channels: [chat] });
  house.time.flow();
  await house.clicks(3);
  await house.settled();
  expect(chat.sent.length).toBe(3);
  expect((await house.outcomes(type)).length).toBe(3);
});

describe("a network that answers 429", () => {
  test("gets no request until its Retry-After is over", async () => {
    const chat = fakeChannel("chat", () => (chat.sent.length === 1 ? throttled(17_000) : DELIVERED));
    await using house = await openDelivery({ channels: [chat] });
    await house.clicks(3);
    expect(await house.time.armed()).toBe(17_000);
    expect(chat.sent.length).toBe(1);
    // A 429 only asks the service to slow down. It is no sign of a broken network, so the circuit stays closed.
    expect(house.delivery.circuit("chat")).toBe("closed");
    house.time.flow();
    await house.settled();
    expect(chat.sent.length).toBe(4);
  });

  test("gets no request for a second if it names no Retry-After", async () => {
    const chat = fakeChannel("chat", () => (chat.sent.length === 1 ? throttled() : DELIVERED));
    await using house = await openDelivery({ channels: [chat], random: () => 0 });
    await house.clicks(2);
    expect(await house.time.armed()).toBe(1_000);
    house.time.flow();
    await house.settled();
  });

  test("gets no direct send until its Retry-After is over", async () => {
    const chat = fakeChannel("chat", () => (chat.sent.length === 1 ? throttled(17_000) : DELIVERED));
    await using house = await openDelivery({ channels: [chat] });
    await house.clicks(1);
    await house.time.armed();
    await house.append(NOTIFY);
    expect(await house.time.armed()).toBe(17_000);
    expect(chat.sent.length).toBe(1);
    house.time.flow();
    await house.settled();
    expect(chat.sent.map(({ kind }) => kind)).toEqual(["click", "notification", "click"]);
  });
});

describe("after the clock is set back", () => {
  const DAY_MS = 24 * HOUR_MS;
  const BROKEN = (sent: number): DispatchResult => (sent <= 5 ? UNAVAILABLE : DELIVERED);

  test.each<[string, (sent: number) => DispatchResult, number]>([
    ["a pause", (sent) => (sent === 1 ? throttled(17_000) : DELIVERED), 1],
    ["an open circuit", BROKEN, 5],
  ])("%s does not last longer", async (_name, answer, before) => {
    const chat = fakeChannel("chat", () => answer(chat.sent.length));
    await using house = await openDelivery({ channels: [chat], random: () => 0 });
    await house.clicks(8);
    await house.time.armed();
    expect(chat.sent).toHaveLength(before);
    await house.until(house.time.clock());
    house.time.advance(-DAY_MS);
    // After the jump, the dispatcher looks at the clock when an event arrives, or after thirty seconds.
    await house.clicks(1);
    await house.until(house.time.clock() + 60_000);
    // The clock went back by a day. Dispatches that were not tried yet must not wait until the old time comes again.
    expect(new Set(chat.sent.map(({ id }) => id)).size).toBe(9);
  });
});

describe("a broken network", () => {
  test("is probed with one dispatch, and used again when the probe succeeds", async () => {
    const probe = gate();
    let down = true;
    const chat = fakeChannel("chat", () => (down ? UNAVAILABLE : chat.sent.length === 6 ? probe.answer : DELIVERED));
    await using house = await openDelivery({ channels: [chat], random: () => 0 });
    await house.clicks(30);
    expect(await house.time.armed()).toBe(1_000);
    await untilCircuit(house, "open");
    expect(chat.sent.length).toBe(5);
    down = false;
    house.time.ring();
    await chat.until(6);
    expect(house.delivery.circuit("chat")).toBe("half_open");
    expect(chat.inFlightMax).toBe(1);
    probe.open();
    await house.settled();
    await untilCircuit(house, "closed");
    const opened = { channel: "chat", failures: 5, until: new Date(house.time.clock()).toISOString() };
    expect(await house.events("CircuitOpened", "CircuitClosed")).toMatchObject([
      { data: opened },
      { data: { channel: "chat" } },
    ]);
  });

  test("gets no request after a restart until its open circuit is due for a probe", async () => {
    const folder = newLogFile();
    const time = fakeTime();
    const chat = fakeChannel("chat", () => UNAVAILABLE);
    {
      await using house = await openDelivery({ channels: [chat], file: folder, time, random: () => 0 });
      await house.clicks(30);
      await untilCircuit(house, "open");
    }
    await using house = await openDelivery({ channels: [chat], file: folder, time, random: () => 0 });
    expect(await house.time.armed()).toBe(1_000);
    expect([chat.sent.length, house.delivery.circuit("chat")]).toEqual([5, "open"]);
    house.time.ring();
    await chat.until(6);
  });
});

/** Waits for the circuit's state in the log, which all instances share. */
function untilCircuit(house: DeliveryHarness, wanted: Circuit): Promise<void> {
  return eventually(house.projector, () => house.delivery.circuit("chat") === wanted);
}

test("a due retry does not wait for a hanging dispatch", async () => {
  const stuck = gate();
  const chat = fakeChannel("chat", (_dispatch, attempt) => {
    if (chat.sent.length === 2) return stuck.answer;
    return chat.sent.length === 3 && attempt === 1 ? UNAVAILABLE : DELIVERED;
  });
  await using house = await openDelivery({ channels: [chat] });
  await house.clicks(1);
  await house.settled();
  // After one success, the dispatcher may have two requests in flight.
  await house.clicks(2);
  await chat.until(3);
  await house.time.armed();
  house.time.ring();
  await chat.until(4);
  expect(chat.sent[3]?.id).toBe(chat.sent[2]?.id ?? "");
  stuck.open();
  await house.settled();
});

test("an outcome that the log refused is recorded later without a second send", async () => {
  let full = true;
  const onFullDisk = (eventLog: EventLog): EventLog => ({
    ...eventLog,
    append: (...args) => {
      if (!full) return eventLog.append(...args);
      full = false;
      return Promise.reject(new StoreFull());
    },
  });
  const chat = fakeChannel("chat");
  await using house = await openDelivery({ channels: [chat], wrap: onFullDisk });
  house.time.flow();
  await house.clicks(1);
  await house.settled();
  expect(chat.sent.length).toBe(1);
  expect(house.faults).toEqual(["a dispatch could not be recorded"]);
  expect((await house.outcomes("DispatchSucceeded")).map(({ data }) => data.attempt)).toEqual([1]);
});

test("an unreadable log is reported once and read again later", async () => {
  let canRead = true;
  const outOfReach = (eventLog: EventLog): EventLog => ({
    ...eventLog,
    store: {
      ...eventLog.store,
      read: (...args) => {
        if (!canRead) throw new StoreFull();
        return eventLog.store.read(...args);
      },
    },
  });
  const chat = fakeChannel("chat");
  await using house = await openDelivery({ channels: [chat], wrap: outOfReach });
  for (const round of [1, 2]) {
    canRead = false;
    await house.clicks(1);
    for (let look = 0; look < 3; look++) {
      await house.time.armed();
      house.time.ring();
      await house.calm();
    }
    expect(house.faults).toEqual(Array.from({ length: round }, () => "pending dispatches could not be read"));
    canRead = true;
    await house.time.armed();
    house.time.ring();
    await chat.until(round);
    await house.settled();
  }
});
