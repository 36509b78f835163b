// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { DispatchResult } from "../../src/networks/network.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { DELIVERED, fakeChannel, gate, IN_DOUBT, REFUSED, UNAVAILABLE } from "../harness/in-process/fake-channel.ts";
import { eventually, NOTIFY, openDelivery } from "../harness/in-process/delivery.ts";

/**
 * Time limit in ms of the wait for an outcome. It is longer than any of these tests takes, so the wait ends only by the
 * outcome itself.
 */
const LONG_MS = 60_000;

describe("waiting for the end of a dispatch", () => {
  const ends: [string, DispatchResult, object][] = [
    ["delivered", DELIVERED, { status: "delivered", latencyMs: 0 }],
    ["skipped", { outcome: "skipped", reason: "too_old" }, { status: "skipped", detail: "too_old" }],
    ["in doubt", IN_DOUBT, { status: "in_doubt", detail: "the answer did not come" }],
    ["refused", REFUSED, { status: "failed", detail: "malformed", latencyMs: 0 }],
  ];

  test.each(ends)("returns that it was %s, to earlier and to later callers", async (_name, result, settlement) => {
    const held = gate();
    const chat = fakeChannel("chat", () => held.answer);
    await using house = await openDelivery({ channels: [chat] });
    const position = await house.append(NOTIFY);
    const before = house.delivery.settled("chat", position, LONG_MS);
    held.open(result);
    expect(await before).toEqual(settlement as never);
    expect(await house.delivery.settled("chat", position, LONG_MS)).toEqual(settlement as never);
  });

  test("continues through failed attempts to the final outcome", async () => {
    const chat = fakeChannel("chat", (_dispatch, attempt) => (attempt < 4 ? UNAVAILABLE : DELIVERED));
    await using house = await openDelivery({ channels: [chat] });
    house.time.flow();
    const position = await house.append(NOTIFY);
    expect(await house.delivery.settled("chat", position, LONG_MS)).toMatchObject({ status: "delivered" });
    expect(chat.sent.length).toBe(4);
  });

  test("returns undefined when it takes too long", async () => {
    const held = gate();
    await using house = await openDelivery({ channels: [fakeChannel("chat", () => held.answer)] });
    const position = await house.append(NOTIFY);
    expect(await house.delivery.settled("chat", position, 1)).toBeUndefined();
    held.open();
    expect(await house.delivery.settled("chat", position, LONG_MS)).toMatchObject({ status: "delivered" });
  });

  test("answers each caller about its own dispatch and channel", async () => {
    const held = gate();
    const channels = [fakeChannel("chat", () => held.answer), fakeChannel("messaging", () => REFUSED)];
    await using house = await openDelivery({ channels });
    const both = await house.append({ type: "ChannelTestRequested", data: { channels: ["chat", "messaging"] } });
    const other = await house.append(NOTIFY);
    const waits = [
      house.delivery.settled("chat", both, LONG_MS),
      house.delivery.settled("chat", both, LONG_MS),
      house.delivery.settled("messaging", both, LONG_MS),
      house.delivery.settled("chat", other, LONG_MS),
    ];
    held.open();
    expect((await Promise.all(waits)).map((settlement) => settlement?.status)).toEqual([
      "delivered",
      "delivered",
      "failed",
      "delivered",
    ]);
  });

  test("ignores the other lane, even if that is settled further", async () => {
    const held = gate();
    const chat = fakeChannel("chat", ({ kind }) => (kind === "notification" ? held.answer : DELIVERED));
    await using house = await openDelivery({ channels: [chat] });
    await house.clicks(2);
    await house.settled();
    const position = await house.append(NOTIFY);
    await chat.until(3);
    await house.clicks(20);
    const { clicks } = house.projector.state("deliveries").chat.lanes;
    await eventually(house.projector, () => clicks.pending === 0);
    const waiting = house.delivery.settled("chat", position, LONG_MS);
    held.open(REFUSED);
    for (const settlement of [await waiting, await house.delivery.settled("chat", position, LONG_MS)]) {
      expect(settlement).toEqual({ status: "failed", detail: "malformed", latencyMs: 0 });
    }
  });

  test("finds an outcome from before a restart", async () => {
    const file = newLogFile();
    let position = 0;
    {
      await using house = await openDelivery({ file, channels: [fakeChannel("chat", () => REFUSED)] });
      position = await house.append(NOTIFY);
      await house.settled();
      await house.clicks(30);
      await house.settled();
    }
    await using again = await openDelivery({ file, channels: [fakeChannel("chat")] });
    expect(await again.delivery.settled("chat", position, LONG_MS)).toEqual({
      status: "failed",
      detail: "malformed",
      latencyMs: 0,
    });
  });
});

test("the configured channels are those with a dispatcher, in fixed order", async () => {
  const channels = [fakeChannel("messaging"), fakeChannel("ads")];
  await using house = await openDelivery({ channels });
  expect(house.delivery.configured).toEqual(["ads", "messaging"]);
  expect(house.delivery.circuit("chat")).toBeUndefined();
  expect(house.delivery.circuit("ads")).toBe("closed");
});
