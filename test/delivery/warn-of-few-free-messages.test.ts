// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { countFreeTexts, warnOfTexts, watchFreeTexts } from "../../src/delivery/warn-of-few-free-messages.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { fakeChannel } from "../harness/in-process/fake-channel.ts";
import { eventually, NOTIFY, openDelivery } from "../harness/in-process/delivery.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";

type House = Awaited<ReturnType<typeof openDelivery>>;

/** Appends the outcome of a request that sent this many texts. */
async function accept(house: House, texts: number, channel: "messaging" | "chat" = "messaging"): Promise<void> {
  const one = outcomeOf("DispatchSucceeded", {
    channel,
    lane: "direct",
    source: 1,
    attempt: 1,
    status: 200,
    latency_ms: 1,
  });
  if (one.type !== "DispatchSucceeded") throw new Error("another outcome");
  const requests = Array.from({ length: texts }, () => one.data.requests[0]!);
  const { eventLog } = house.context;
  const { last } = await eventLog.append(STREAMS.delivery(channel), [{ ...one, data: { ...one.data, requests } }], {});
  await house.projector.until(last);
}

test("texts of the month are counted, and from 900 on the operator is warned once", async () => {
  const chat = fakeChannel("chat");
  await using house = await openDelivery({ channels: [chat] });
  const announced: string[] = [];
  const announce = async (text: string, key: string) => {
    announced.push(`${key}: ${text}`);
    await house.append(NOTIFY);
  };
  using _ = watchFreeTexts({ ...house.context, announce });
  await accept(house, 899);
  await accept(house, 500, "chat");
  const { store } = house.context.eventLog;
  const now = house.context.clock();
  expect(await countFreeTexts(store, now)).toBe(899);
  expect(warnOfTexts(899)).toBeUndefined();
  await accept(house, 1);
  await eventually(house.projector, () => announced.length === 1);
  await accept(house, 50);
  expect(await countFreeTexts(store, now)).toBe(950);
  expect(announced).toEqual([expect.stringMatching(/^whatsapp\/\d{4}-\d\d: WhatsApp accepted 900 texts this month/)]);
  expect(warnOfTexts(1_000)).toContain("1000 or more texts");
  expect(await countFreeTexts(store, now + 40 * 24 * 3_600_000)).toBe(0);
});
