// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { NewEvent } from "../../src/log/event-log.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { DELIVERED, fakeChannel, throttled, UNAVAILABLE } from "../harness/in-process/fake-channel.ts";
import { NOTIFY, openDelivery } from "../harness/in-process/delivery.ts";

const TEST: NewEvent = { type: "ChannelTestRequested", data: { channels: ["chat", "messaging"] } };

test("a notification goes only to chat and a message only to messaging", async () => {
  const channels = [fakeChannel("ads"), fakeChannel("chat"), fakeChannel("messaging")];
  await using house = await openDelivery({ channels });
  await house.append(NOTIFY, { type: "MessageRequested", data: { text: "hello" } });
  await house.settled();
  const [request, message] = await house.events("NotificationRequested", "MessageRequested");
  const of = (event = request) => ({ id: event?.id ?? "", time: event?.time ?? "" });
  expect(channels.map(({ sent }) => sent)).toEqual([
    [],
    [{ kind: "notification", ...of(), message: "disk is full", service: "backup", level: "error" }],
    [{ kind: "message", ...of(message), text: "hello" }],
  ]);
});

describe("a channel test", () => {
  test("is attempted once", async () => {
    const channels = [fakeChannel("chat", () => UNAVAILABLE), fakeChannel("messaging")];
    await using house = await openDelivery({ channels });
    await house.append(TEST);
    await house.settled();
    expect(channels.map(({ sent }) => sent.map(({ kind }) => kind))).toEqual([["test"], ["test"]]);
    expect((await house.outcomes("DispatchAbandoned")).map(({ data }) => [data.attempt, data.refused])).toEqual([
      [1, false],
    ]);
  });

  test("is sent at once, ahead of a notification that waits in a paused channel", async () => {
    const chat = fakeChannel("chat", ({ kind }) => (kind === "test" ? DELIVERED : throttled(60_000)));
    await using house = await openDelivery({ channels: [chat] });
    await house.append(NOTIFY);
    await house.time.armed();
    await house.append(NOTIFY, { type: "ChannelTestRequested", data: { channels: ["chat"] } });
    await chat.until(2);
    expect(chat.sent.map(({ kind }) => kind)).toEqual(["notification", "test"]);
  });

  test("is skipped if it is found a minute after its request", async () => {
    const file = newLogFile();
    const chat = fakeChannel("chat");
    await using stopped = await openDelivery({ file });
    await stopped.append(TEST);
    stopped.time.advance(60_001);
    await using house = await openDelivery({ file, channels: [chat], time: stopped.time });
    await house.settled("chat");
    expect(chat.sent).toEqual([]);
    expect((await house.outcomes("DispatchSkipped")).map(({ data }) => data.reason)).toEqual(["expired"]);
  });
});

test("a notification found a day after its request is delivered", async () => {
  const file = newLogFile();
  const chat = fakeChannel("chat");
  await using stopped = await openDelivery({ file });
  await stopped.append(NOTIFY);
  stopped.time.advance(24 * 3_600_000);
  await using house = await openDelivery({ file, channels: [chat], time: stopped.time });
  await house.settled("chat");
  expect(chat.sent.length).toBe(1);
});
