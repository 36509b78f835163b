// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { fakeChannel, gate } from "../harness/in-process/fake-channel.ts";
import { NOTIFY, openDelivery } from "../harness/in-process/delivery.ts";

test("after a stop begins, no click is sent, but a notification still is", async () => {
  const held = gate();
  const chat = fakeChannel("chat", () => held.answer);
  await using house = await openDelivery({ channels: [chat] });
  await house.clicks(20);
  await chat.until(1);
  house.dispatchers.holdClicks();
  held.open();
  const position = await house.append(NOTIFY);
  await house.until(house.time.clock() + 60_000);
  expect(chat.sent.map(({ kind }) => kind)).toEqual(["click", "notification"]);
  expect(await house.delivery.settled("chat", position, 60_000)).toMatchObject({ status: "delivered" });
  expect(await house.outcomes("DispatchSucceeded")).toHaveLength(2);
});

test("a channel that waits for an answer does not delay the others' stop", async () => {
  const [slow, quick] = [gate(), gate()];
  const chat = fakeChannel("chat", () => quick.answer);
  const messaging = fakeChannel("messaging", () => slow.answer);
  await using house = await openDelivery({ channels: [chat, messaging] });
  await house.clicks(20);
  await Promise.all([chat.until(1), messaging.until(1)]);
  const stopped = house.dispatchers[Symbol.asyncDispose]();
  quick.open();
  await house.until(house.time.clock() + 60_000);
  expect([chat.sent.length, messaging.sent.length]).toEqual([1, 1]);
  expect((await house.outcomes("DispatchSucceeded")).map(({ data }) => data.channel)).toEqual(["chat"]);
  slow.open();
  await stopped;
  expect(await house.outcomes("DispatchSucceeded")).toHaveLength(2);
});
