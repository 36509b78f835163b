// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { StoreFull } from "eventstore-lite/testing";
import type { EventLog } from "../../src/log/event-log.ts";
import { serverClock } from "../../src/log/log-time-and-clock-skew.ts";
import type { Channel, DispatchResult } from "../../src/networks/network.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { DELIVERED, fakeChannel, gate, throttled, type Answer } from "../harness/in-process/fake-channel.ts";
import { listLetters } from "../harness/in-process/list-dead-letters.ts";
import { eventually, openDelivery, type DeliveryHarness } from "../harness/in-process/delivery.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const SILENT: DispatchResult = { outcome: "retryable", detail: "no answer in time", mayHaveArrived: true };

/**
 * Fake network that claims to recognise a repeated dispatch by its id for a day. It drops no repetition, so that the
 * test sees every send.
 */
function knowing(answer: Answer) {
  const chat = fakeChannel("chat", answer);
  return { chat, channel: { ...chat, recognisesMs: DAY_MS } satisfies Channel };
}

const failed = (house: DeliveryHarness): Promise<void> =>
  eventually(house.projector, () => house.projector.state("deliveries").chat.lanes.clicks.retries.size > 0);

/**
 * Sends a click to a network that does not answer, so that it may have arrived, then stops the service. Returns the
 * clock.
 */
async function doubtful(file: string): Promise<DeliveryHarness["time"]> {
  const { channel } = knowing(() => SILENT);
  await using house = await openDelivery({ file, channels: [channel] });
  await house.clicks(1, ["chat"]);
  await failed(house);
  expect((await house.outcomes("DispatchFailed")).map(({ data }) => data.may_have_arrived)).toEqual([true]);
  return house.time;
}

describe("a dispatch that may have arrived at a deduplicating network", () => {
  test("is resent under its id within the network's deduplication window", async () => {
    const file = newLogFile();
    const time = await doubtful(file);
    time.advance(DAY_MS - 1);
    const { chat, channel } = knowing(() => DELIVERED);
    await using house = await openDelivery({ file, channels: [channel], time });
    await house.settled();
    const [click] = await house.events("LinkClicked");
    expect(chat.sent.map(({ id }) => id)).toEqual([click?.id ?? ""]);
  });

  test("is in doubt after the network's deduplication window, and is not sent", async () => {
    const file = newLogFile();
    const time = await doubtful(file);
    time.advance(DAY_MS);
    const { chat, channel } = knowing(() => DELIVERED);
    await using house = await openDelivery({ file, channels: [channel], time });
    await house.settled();
    expect(chat.sent).toEqual([]);
    const [doubt] = await house.outcomes("DispatchInDoubt");
    expect(doubt?.data).toMatchObject({ attempt: 1, detail: expect.stringContaining("too late") });
  });

  test("is in doubt after the window even if the machine's clock is behind", async () => {
    const file = newLogFile();
    const time = await doubtful(file);
    const logClock = serverClock({ wallClock: () => time.clock() - HOUR_MS, elapsedMs: time.clock });
    await logClock.look({ now: async () => time.clock() });
    time.advance(DAY_MS);
    const { chat, channel } = knowing(() => DELIVERED);
    await using house = await openDelivery({ file, channels: [channel], time, clock: logClock.now });
    await house.settled();
    expect(chat.sent).toEqual([]);
    expect(await house.outcomes("DispatchInDoubt")).toHaveLength(1);
  });

  test("counts the window from the first uncertain attempt, despite a later certain failure", async () => {
    const { chat, channel } = knowing((_dispatch, attempt) => (attempt === 1 ? SILENT : throttled(DAY_MS)));
    await using house = await openDelivery({ channels: [channel] });
    house.time.flow();
    await house.clicks(1);
    await house.settled();
    expect(chat.sent).toHaveLength(2);
    expect(house.projector.state("deliveries").chat).toMatchObject({ in_doubt: 1, dead: 0 });
  });

  test("counts the window from the attempt's end, even if it is recorded a day later", async () => {
    const { chat, channel } = knowing((_dispatch, attempt) => (attempt === 1 ? SILENT : DELIVERED));
    let isFull = true;
    const onFullDisk = (eventLog: EventLog): EventLog => ({
      ...eventLog,
      append: (...args) => (isFull ? Promise.reject(new StoreFull()) : eventLog.append(...args)),
    });
    await using house = await openDelivery({ channels: [channel], wrap: onFullDisk });
    await house.clicks(1);
    await house.until(house.time.clock() + DAY_MS);
    isFull = false;
    await house.until(house.time.clock() + DAY_MS / 2);
    expect(chat.sent).toHaveLength(1);
    expect(house.projector.state("deliveries").chat).toMatchObject({ in_doubt: 1, dispatched: 0 });
  });

  test("is in doubt if another network is configured since", async () => {
    const file = newLogFile();
    const time = await doubtful(file);
    const other = fakeChannel("chat");
    await using house = await openDelivery({ file, channels: [other], time });
    await house.clicks(1);
    time.flow();
    await house.settled();
    const [first, second] = await house.events("LinkClicked");
    expect(other.sent.map(({ id }) => id)).toEqual([second?.id ?? ""]);
    expect((await house.outcomes("DispatchInDoubt")).map(({ data }) => data.source)).toEqual([first?.position ?? 0]);
  });

  describe("and is now a dead letter", () => {
    /** Creates a dead letter by attempts that the network never answered. */
    async function letterIn(file: string): Promise<DeliveryHarness["time"]> {
      const { channel } = knowing(() => SILENT);
      await using house = await openDelivery({ file, channels: [channel] });
      await house.clicks(1);
      await house.until(house.time.clock() + 2 * HOUR_MS);
      expect(house.projector.state("deliveries").chat).toMatchObject({ dead: 1 });
      return house.time;
    }

    /** Retries all dead letters, as an operator does. */
    async function retried(house: DeliveryHarness): Promise<void> {
      for (const { event_id, source, channel, doubtful_since } of await listLetters(
        house.eventLog.store,
        house.projector,
      )) {
        const doubt = doubtful_since === null ? {} : { doubtful_since };
        await house.append({ type: "DispatchRetryRequested", data: { event_id, source, channel, ...doubt } });
      }
      await house.settled();
    }

    test("is resent within the network's deduplication window", async () => {
      const file = newLogFile();
      const time = await letterIn(file);
      const { chat, channel } = knowing(() => DELIVERED);
      await using house = await openDelivery({ file, channels: [channel], time });
      await retried(house);
      const [retry] = await house.events("DispatchRetryRequested");
      expect(chat.sent.map(({ retryId }) => retryId)).toEqual([retry!.id]);
    });

    test("is in doubt after a late retry, and is not sent", async () => {
      const file = newLogFile();
      const time = await letterIn(file);
      time.advance(DAY_MS);
      const { chat, channel } = knowing(() => DELIVERED);
      await using house = await openDelivery({ file, channels: [channel], time });
      await retried(house);
      expect(chat.sent).toEqual([]);
      expect(house.projector.state("deliveries").chat).toMatchObject({ in_doubt: 1, dead: 0 });
    });

    test("stays uncertain after retries that the channel refused or rejected while suspended", async () => {
      const file = newLogFile();
      const time = await letterIn(file);
      const refusing = knowing(() => ({ outcome: "refused", detail: "gone", channel: true }));
      {
        await using house = await openDelivery({ file, channels: [refusing.channel], time });
        await retried(house);
        await retried(house);
        expect(refusing.chat.sent).toHaveLength(1);
      }
      time.advance(DAY_MS);
      const { chat, channel } = knowing(() => DELIVERED);
      await using house = await openDelivery({ file, channels: [channel], time });
      await house.append({ type: "ChannelResumed", data: { channel: "chat", why: "by_hand" } });
      await retried(house);
      expect(chat.sent).toEqual([]);
      expect(house.projector.state("deliveries").chat).toMatchObject({ in_doubt: 1, dead: 0 });
    });
  });

  test("is resent alone, while others are sent in a digest", async () => {
    const held = gate();
    const { chat, channel } = knowing(() => {
      if (chat.sent.length === 1) return held.answer;
      // The outcome of the first click is unknown. The pause of 60 s makes its retry due at the same time as the other
      // clicks.
      return chat.sent.length === 2 ? { outcome: "delivered", status: 200, pauseMs: 60_000 } : DELIVERED;
    });
    await using house = await openDelivery({ channels: [channel], digestAfterMs: 30_000 });
    await house.clicks(10);
    await chat.until(1);
    house.time.advance(31_000);
    held.open(SILENT);
    await failed(house);
    house.time.flow();
    await house.settled();
    const [first, , ...later] = chat.sent;
    expect(later.map(({ kind }) => kind).toSorted()).toEqual(["click", "digest"]);
    expect(later.find(({ kind }) => kind === "click")?.id).toBe(first?.id ?? "");
    expect(later.find(({ kind }) => kind === "digest")).toMatchObject({ clicks: 8 });
  });

  test("is in doubt at once if it is a channel test", async () => {
    const { channel } = knowing(() => SILENT);
    await using house = await openDelivery({ channels: [channel] });
    await house.append({ type: "ChannelTestRequested", data: { channels: ["chat"] } });
    await house.settled();
    expect(house.projector.state("deliveries").chat).toMatchObject({ in_doubt: 1, dead: 0 });
  });
});
