// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { StoreFull } from "eventstore-lite/testing";
import type { NewEvent, EventLog } from "../../src/log/event-log.ts";
import { secret } from "../../src/platform/secret.ts";
import type { DispatchResult } from "../../src/networks/network.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { DELIVERED, fakeChannel, gate } from "../harness/in-process/fake-channel.ts";
import { eventually, NOTIFY, openDelivery } from "../harness/in-process/delivery.ts";

const ARCHIVED: DispatchResult = { outcome: "refused", status: 410, detail: "channel_is_archived", channel: true };
const TEST: NewEvent = { type: "ChannelTestRequested", data: { channels: ["chat"] } };
const RESUME = { type: "ChannelResumed", data: { channel: "chat", why: "by_hand" } } as const;

/** Fake chat channel that is refused until its network is `open`. */
function refusing() {
  const network = { open: false };
  return { network, chat: fakeChannel("chat", () => (network.open ? DELIVERED : ARCHIVED)) };
}

describe("a channel that is refused as a whole", () => {
  test("is suspended and announced once, and its clicks wait", async () => {
    const { chat } = refusing();
    await using house = await openDelivery({ channels: [chat, fakeChannel("messaging")] });
    await house.clicks(20);
    await house.settled("messaging");
    const [stopped, ...more] = await house.events("ChannelSuspended");
    expect(more).toEqual([]);
    expect(stopped?.data).toEqual({
      channel: "chat",
      network: "fake chat",
      status: 410,
      detail: "channel_is_archived",
      credential: "mark of fake-credential",
    });
    expect(chat.sent).toHaveLength(1);
    expect(house.projector.state("deliveries").chat).toMatchObject({
      dead: 0,
      suspended: { detail: "channel_is_archived" },
    });
    await house.untilAnnounced(1);
    expect(house.announced).toEqual([
      [expect.stringContaining("channel_is_archived"), `suspended/chat/${stopped?.time}`, "chat"],
    ]);
    expect(await house.outcomes("DispatchAbandoned")).toEqual([]);
  });

  test("gets no further request while its suspension is being recorded", async () => {
    const answers = Array.from({ length: 4 }, () => gate());
    answers[0]?.open();
    const chat = fakeChannel("chat", () => answers[chat.sent.length - 1]?.answer ?? DELIVERED);
    const holds: (() => void)[] = [];
    const wrap = (eventLog: EventLog): EventLog => ({
      ...eventLog,
      async append(...args) {
        if (chat.sent.length > 1) await new Promise<void>((resolve) => holds.push(resolve));
        return eventLog.append(...args);
      },
    });
    await using house = await openDelivery({ channels: [chat], wrap });
    await house.clicks(1);
    await house.settled();
    await house.clicks(10);
    await chat.until(3);
    answers[1]?.open();
    await chat.until(4);
    await house.until(house.time.clock());
    answers[2]?.open(ARCHIVED);
    await house.until(house.time.clock());
    holds.shift()?.();
    await house.until(house.time.clock());
    expect(house.projector.state("deliveries").chat).toMatchObject({ dispatched: 2, suspended: null });
    expect(chat.sent).toHaveLength(4);
    for (const { open } of answers) open();
    while (house.projector.state("deliveries").chat.dispatched < 3) {
      holds.shift()?.();
      await house.until(house.time.clock());
    }
    expect([await house.events("ChannelSuspended"), chat.sent].map(({ length }) => length)).toEqual([1, 4]);
  });

  test("rejects direct sends at once, without a request to the network", async () => {
    const { chat } = refusing();
    await using house = await openDelivery({ channels: [chat] });
    const first = await house.append(NOTIFY);
    expect(await house.delivery.settled("chat", first, 1_000)).toMatchObject({ status: "failed" });
    const second = await house.append(NOTIFY);
    expect(await house.delivery.settled("chat", second, 1_000)).toEqual({
      status: "failed",
      detail: "the channel is suspended: channel_is_archived",
    });
    expect(chat.sent).toHaveLength(1);
  });

  test("does not reject a dispatch delivered before, even if that is recorded late", async () => {
    let refusals = 1;
    const wrap = (eventLog: EventLog): EventLog => ({
      ...eventLog,
      append: (...args) => (refusals-- > 0 ? Promise.reject(new StoreFull()) : eventLog.append(...args)),
    });
    const chat = fakeChannel("chat", () => (chat.sent.length === 1 ? DELIVERED : ARCHIVED));
    await using house = await openDelivery({ channels: [chat], wrap });
    const first = await house.append(NOTIFY);
    await house.until(house.time.clock());
    const second = await house.append(NOTIFY);
    await eventually(house.projector, () => house.projector.state("deliveries").chat.suspended !== null);
    house.time.flow();
    await house.settled();
    const ends = await house.outcomes("DispatchSucceeded", "DispatchAbandoned");
    expect(new Map(ends.map(({ type, data }) => [data.source, type as string]))).toEqual(
      new Map([
        [second, "DispatchAbandoned"],
        [first, "DispatchSucceeded"],
      ]),
    );
  });

  test("delivers every waiting click after an operator resumes it", async () => {
    const { chat, network } = refusing();
    await using house = await openDelivery({ channels: [chat] });
    await house.clicks(30);
    await eventually(house.projector, () => house.projector.state("deliveries").chat.suspended !== null);
    network.open = true;
    await house.append(RESUME);
    house.time.flow();
    await house.settled();
    expect(house.projector.state("deliveries").chat).toMatchObject({ dispatched: 30, dead: 0, suspended: null });
  });

  test("is suspended and announced again if it is still refused after a resume", async () => {
    const { chat } = refusing();
    await using house = await openDelivery({ channels: [chat, fakeChannel("messaging")] });
    for (let stop = 1; stop <= 10; stop++) {
      await house.clicks(1);
      await chat.until(stop);
      await house.settled("messaging");
      while ((await house.events("ChannelSuspended")).length < stop) await house.clicks(1, ["messaging"]);
      house.time.advance(60_000);
      if (stop < 10) await house.append(RESUME);
    }
    expect(await house.events("ChannelSuspended")).toHaveLength(10);
    // A failure that suspends the channel is not counted as an attempt at the click, so the click is never given up.
    expect(await house.outcomes("DispatchAbandoned")).toEqual([]);
    await house.untilAnnounced(10);
    expect(house.announced).toHaveLength(10);
  });

  test("resumes when a channel test is delivered", async () => {
    const { chat, network } = refusing();
    await using house = await openDelivery({ channels: [chat] });
    await house.clicks(5);
    await chat.until(1);
    network.open = true;
    while (house.projector.state("deliveries").chat.suspended === null) await house.clicks(1);
    await house.append(TEST);
    house.time.flow();
    await house.settled();
    expect(await house.events("ChannelResumed")).toMatchObject([{ data: { why: "delivered" } }]);
  });

  test("stays suspended after a restart with the same credential, and resumes with another", async () => {
    const file = newLogFile();
    const { chat } = refusing();
    {
      await using house = await openDelivery({ file, channels: [chat] });
      await house.clicks(3);
      await chat.until(1);
      while (house.projector.state("deliveries").chat.suspended === null) await house.clicks(1);
    }
    const same = fakeChannel("chat");
    {
      await using house = await openDelivery({ file, channels: [same] });
      const position = await house.append(NOTIFY);
      expect(await house.delivery.settled("chat", position, 1_000)).toMatchObject({ status: "failed" });
      // The first service may have ended before it announced the suspension. Each suspension has a key, so the second
      // service does not announce it twice.
      await house.untilAnnounced(1);
      expect(house.announced.map(([, key]) => key)).toEqual([expect.stringMatching(/^suspended\/chat\/2026-/)]);
    }
    expect(same.sent).toEqual([]);
    const other = { ...fakeChannel("chat"), credential: secret("another") };
    await using house = await openDelivery({ file, channels: [other] });
    house.time.flow();
    await house.settled();
    expect(await house.events("ChannelResumed")).toMatchObject([{ data: { why: "credential_changed" } }]);
    expect(house.projector.state("deliveries").chat).toMatchObject({ suspended: null });
  });
});
