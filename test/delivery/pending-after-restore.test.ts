// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { pendingOf } from "../../projections/deliveries.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import type { Channel } from "../../src/networks/network.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import {
  DELIVERED,
  fakeChannel,
  REFUSED,
  UNAVAILABLE,
  type Answer,
  type FakeChannel,
} from "../harness/in-process/fake-channel.ts";
import { eventually, NOTIFY, openDelivery, type DeliveryHarness } from "../harness/in-process/delivery.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const RESTORED: NewEvent = {
  type: "LogRestored",
  data: { cause: "restore", epoch: "e", found_position: 1, found_hash: "" },
};
const LOSS: NewEvent = { type: "LogLossAccepted", data: { reason: "lost_tail", found_position: 1, found_hash: "" } };

/**
 * Fake network that claims to recognise a repeated dispatch by its id for a day. It drops no repetition, so that the
 * test sees every send.
 */
function knowing(answer?: Answer): { readonly ads: FakeChannel; readonly channel: Channel } {
  const ads = fakeChannel("ads", answer);
  return { ads, channel: { ...ads, recognisesMs: DAY_MS } };
}

/**
 * Creates a log that was restored. `request` appends what requests its dispatches; these may have been delivered before
 * the restore.
 */
async function restored(request: (house: DeliveryHarness) => Promise<unknown>, newEvent = RESTORED) {
  const file = newLogFile();
  await using house = await openDelivery({ file });
  await request(house);
  await house.append(newEvent);
  return { file, time: house.time };
}

const state = (house: DeliveryHarness, channel: "ads" | "chat" | "messaging" = "chat") =>
  house.projector.state("deliveries")[channel];

describe("a dispatch that was pending when the log was restored", () => {
  test.each([RESTORED, LOSS])(
    "is in doubt after $type and not sent if the network does not deduplicate",
    async (newEvent) => {
      const { file, time } = await restored(async (house) => {
        await house.clicks(50, ["chat", "messaging"]);
        await house.append(NOTIFY);
      }, newEvent);
      const [chat, messaging] = [fakeChannel("chat"), fakeChannel("messaging")];
      await using house = await openDelivery({ file, time, channels: [chat, messaging] });
      await house.settled();
      expect([chat.sent, messaging.sent]).toEqual([[], []]);
      expect(state(house)).toMatchObject({ in_doubt: 51, dispatched: 0 });
      const [doubt] = await house.outcomes("DispatchInDoubt");
      expect(doubt?.data).toMatchObject({ attempt: 0, detail: expect.stringContaining("restored") });
      await house.clicks(1);
      time.flow();
      await house.settled();
      expect([chat.sent.length, messaging.sent.length]).toEqual([1, 1]);
    },
  );

  test("is in doubt at once, even among thousands", async () => {
    const { file, time } = await restored((house) => house.clicks(3_500, ["chat"]));
    const chat = fakeChannel("chat");
    // The clock of this test stands still, so the dispatcher must put all 3,500 clicks of the restored log in doubt
    // without waiting for a later time.
    await using house = await openDelivery({ file, time, channels: [chat], digestAfterMs: 0 });
    await house.settled();
    expect(chat.sent).toEqual([]);
    expect(state(house).in_doubt).toBe(3_500);
  });

  test("is sent under its own id, never in a digest, if the network deduplicates", async () => {
    const { file, time } = await restored((house) => house.clicks(5, ["ads"]));
    time.advance(DAY_MS - 1);
    const { ads, channel } = knowing();
    await using house = await openDelivery({ file, time, channels: [channel], digestAfterMs: 30_000 });
    time.flow();
    await house.settled();
    const clicks = await house.events("LinkClicked");
    expect(ads.sent.map(({ kind, id }) => [kind, id])).toEqual(clicks.map(({ id }) => ["click", id]));
    expect(state(house, "ads")).toMatchObject({ dispatched: 5, in_doubt: 0 });
  });

  test("is in doubt after the network's deduplication window", async () => {
    const { file, time } = await restored((house) => house.clicks(2, ["ads"]));
    time.advance(DAY_MS);
    const { ads, channel } = knowing();
    await using house = await openDelivery({ file, time, channels: [channel] });
    await house.settled();
    expect(ads.sent).toEqual([]);
    expect(state(house, "ads").in_doubt).toBe(2);
  });

  test("is in doubt even if it waited for a retry", async () => {
    const file = newLogFile();
    const failing = fakeChannel("chat", () => UNAVAILABLE);
    let time: DeliveryHarness["time"];
    {
      await using house = await openDelivery({ file, channels: [failing] });
      ({ time } = house);
      await house.clicks(1);
      await eventually(house.projector, () => state(house).lanes.clicks.retries.size > 0);
    }
    {
      await using house = await openDelivery({ file, time });
      await house.append(RESTORED);
    }
    const chat = fakeChannel("chat");
    await using house = await openDelivery({ file, time, channels: [chat] });
    await house.settled();
    expect(chat.sent).toEqual([]);
    expect(state(house)).toMatchObject({ in_doubt: 1, dead: 0 });
  });

  test("is in doubt, not a dead letter, if the channel is suspended", async () => {
    const { file, time } = await restored(async (house) => {
      await house.append(NOTIFY);
      await house.clicks(2, ["chat"]);
      const stopped = { channel: "chat", network: "fake chat", detail: "archived", credential: "c" } as const;
      await house.append({ type: "ChannelSuspended", data: { ...stopped, credential: "mark of fake-credential" } });
    });
    const chat = fakeChannel("chat", () => REFUSED);
    await using house = await openDelivery({ file, time, channels: [chat] });
    await house.settled();
    expect(chat.sent).toEqual([]);
    expect(state(house)).toMatchObject({ in_doubt: 3, dead: 0 });
  });

  test("waits while its channel is not configured, then is in doubt", async () => {
    const { file, time } = await restored((house) => house.clicks(2, ["chat"]));
    {
      await using house = await openDelivery({ file, time });
      expect(pendingOf(state(house))).toBe(2);
    }
    time.advance(DAY_MS);
    const chat = fakeChannel("chat", () => DELIVERED);
    await using house = await openDelivery({ file, time, channels: [chat] });
    await house.settled();
    expect([chat.sent.length, state(house).in_doubt]).toEqual([0, 2]);
  });

  test("is removed from the projection's state once it is settled", async () => {
    const { file, time } = await restored((house) => house.clicks(3, ["chat"]));
    await using house = await openDelivery({ file, time, channels: [fakeChannel("chat")] });
    await house.clicks(1);
    expect(state(house, "ads").lanes.clicks.restored).toBeNull();
    time.flow();
    await house.settled();
    expect(state(house).lanes.clicks.restored).toBeNull();
  });
});
