// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { CLICK_CHANNELS } from "../../events/channel-and-lane-names.ts";
import { WINDOW_DISPATCHES_MAX } from "../../src/delivery/outbox-window.ts";
import { UNRECORDED_MAX } from "../../src/delivery/outcome-recorder.ts";
import { WINDOW_MAX } from "../../src/delivery/pace-and-circuit-breaker.ts";
import type { EventLog } from "../../src/log/event-log.ts";
import { nextTurn } from "../../src/platform/work-in-time-slices.ts";
import { DELIVERED, fakeChannel, gate, UNAVAILABLE } from "../harness/in-process/fake-channel.ts";
import { eventually, NOTIFY, openDelivery } from "../harness/in-process/delivery.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

describe("every click", () => {
  test("is delivered once to each channel that it names, with its outcome in the log", async () => {
    const channels = CLICK_CHANNELS.map((name) => fakeChannel(name));
    await using house = await openDelivery({ channels });
    await house.clicks(20);
    await house.clicks(5, ["ads"]);
    await house.settled();
    expect(channels.map(({ sent }) => sent.length)).toEqual([25, 20, 20, 20, 20]);
    for (const { sent } of channels) expect(new Set(sent.map(({ id }) => id)).size).toBe(sent.length);
    const delivered = await house.outcomes("DispatchSucceeded");
    expect(new Set(delivered.map(({ data }) => `${data.channel} ${data.source}`)).size).toBe(105);
    expect(delivered.every(({ data, stream }) => stream === `delivery-${data.channel}` && data.attempt === 1)).toBe(
      true,
    );
  });

  test("reaches the channel as it was recorded", async () => {
    const ads = fakeChannel("ads");
    await using house = await openDelivery({ channels: [ads] });
    await house.append(
      clickOf({
        event: "signup",
        short_code: "autumn",
        original_url: "https://example.com/?a=1",
        ip: "203.0.113.7",
        user_agent: "Mozilla/5.0",
        bot: true,
        channels: ["ads"],
      }),
    );
    await house.settled();
    const [click] = await house.events("LinkClicked");
    expect(ads.sent).toEqual([
      {
        kind: "click",
        id: click?.id ?? "",
        time: click?.time ?? "",
        event: "signup",
        domain: "go.example",
        shortCode: "autumn",
        originalUrl: "https://example.com/?a=1",
        normalizedUrl: "https://example.com/?a=1",
        ip: "203.0.113.7",
        userAgent: "Mozilla/5.0",
        bot: true,
      },
    ]);
  });

  test("is delivered once, even if there are more than the window holds", async () => {
    const CLICKS = 3_000;
    expect(CLICKS).toBeGreaterThan(2 * WINDOW_DISPATCHES_MAX);
    const chat = fakeChannel("chat");
    await using house = await openDelivery({ channels: [chat] });
    await house.clicks(CLICKS);
    await house.settled();
    expect(chat.sent.length).toBe(CLICKS);
    expect(new Set(chat.sent.map(({ id }) => id)).size).toBe(CLICKS);
    expect(chat.inFlightMax).toBeLessThanOrEqual(WINDOW_MAX);
    const { clicks } = house.projector.state("deliveries").chat.lanes;
    expect(clicks).toMatchObject({ above: new Map(), retries: new Map(), low_watermark: house.projector.position + 1 });
  });
});

test("a direct send overtakes waiting clicks", async () => {
  const first = gate();
  const chat = fakeChannel("chat", (_dispatch, attempt) =>
    chat.sent.length === 1 && attempt === 1 ? first.answer : DELIVERED,
  );
  await using house = await openDelivery({ channels: [chat] });
  await house.clicks(50);
  await chat.until(1);
  await house.append(NOTIFY);
  first.open();
  await house.settled();
  expect(chat.sent.findIndex(({ kind }) => kind === "notification")).toBe(1);
});

describe("a channel in trouble", () => {
  test("does not slow the others when it hangs", async () => {
    const stuck = gate();
    const channels = [fakeChannel("chat", () => stuck.answer), fakeChannel("messaging")];
    await using house = await openDelivery({ channels });
    await house.clicks(40);
    await house.settled("messaging");
    expect(channels.map(({ sent }) => sent.length)).toEqual([1, 40]);
    stuck.open();
  });

  test("does not slow the others when it fails", async () => {
    const channels = [fakeChannel("chat", () => UNAVAILABLE), fakeChannel("messaging")];
    await using house = await openDelivery({ channels });
    await house.clicks(40);
    await house.settled("messaging");
    await house.time.armed();
    // The failures opened the circuit of chat, so its other clicks are not tried.
    await eventually(house.projector, () => house.delivery.circuit("chat") === "open");
    expect(house.delivery.circuit("messaging")).toBe("closed");
    expect(channels[0]?.sent.length).toBeLessThanOrEqual(5);
  });
});

test("an exception in a channel's code is logged, leaves the dispatch in doubt and stops nothing", async () => {
  const chat = fakeChannel("chat", () => {
    if (chat.sent.length === 1) throw new TypeError("undefined is not a function: ann@example.com");
    return DELIVERED;
  });
  await using house = await openDelivery({ channels: [chat] });
  await house.clicks(3);
  await house.settled();
  expect(chat.sent.length).toBe(3);
  const [doubt] = await house.outcomes("DispatchInDoubt");
  expect(doubt?.data.detail).not.toContain("ann@example.com");
  expect(house.faults).toEqual(["a channel failed on an internal error"]);
});

test("an internal fault is logged with its dispatches and their request ids", async () => {
  const trace = (digit: string): string => digit.repeat(32);
  const file = newLogFile();
  {
    await using house = await openDelivery({ file });
    for (let at = 0; at < 12; at++) {
      const traceparent = `00-${trace(String(1 + (at % 2)))}-00f067aa0ba902b7-01`;
      const asked = at === 0 ? {} : { request_id: `request-${at % 2}`, traceparent };
      await house.eventLog.append("link", [clickOf({ channels: ["ads"] })], { caller: "test", ...asked });
    }
  }
  const send = () => Promise.reject(new TypeError("a defect"));
  await using again = await openDelivery({ file, channels: [{ ...fakeChannel("ads"), batch: { max: 100, send } }] });
  await again.settled("ads");
  expect(again.faultFields).toMatchObject([
    {
      channel: "ads",
      dispatches: 12,
      positions: "1 2 3 4 5 6 7 8 9 10",
      request_id: "request-1 request-0",
      trace_id: `${trace("2")} ${trace("1")}`,
    },
  ]);
});

test("a stop waits for the dispatch in flight, records it and starts no other", async () => {
  const held = gate();
  const chat = fakeChannel("chat", () => held.answer);
  await using house = await openDelivery({ channels: [chat] });
  await house.clicks(5);
  await chat.until(1);
  let stopped = false;
  const stopping = house.dispatchers[Symbol.asyncDispose]().then(() => (stopped = true));
  // Waits for an append to the log. If a stop of the dispatchers did not wait for the held request to the network, it
  // would be done by then.
  await house.append(NOTIFY);
  expect(stopped).toBe(false);
  held.open();
  await stopping;
  expect((await house.outcomes("DispatchSucceeded")).length).toBe(1);
  expect(chat.sent.length).toBe(1);
  expect(house.faults).toEqual([]);
});

test("while the log records nothing, a channel gets at most 64 dispatches and those in flight", async () => {
  const room = Promise.withResolvers<void>();
  const wrap = (eventLog: EventLog): EventLog => ({
    ...eventLog,
    append: async (...args) => {
      await room.promise;
      return eventLog.append(...args);
    },
  });
  const chat = fakeChannel("chat");
  await using house = await openDelivery({ channels: [chat], wrap });
  await house.append(...Array.from({ length: 300 }, () => NOTIFY));
  await chat.until(UNRECORDED_MAX);
  for (let turns = 0; turns < 1_000; turns++) await nextTurn();
  const answered = chat.sent.length;
  room.resolve();
  await house.settled("chat");
  expect(answered).toBeLessThanOrEqual(UNRECORDED_MAX + WINDOW_MAX);
  expect(chat.sent).toHaveLength(300);
});
