import { expect, test } from "bun:test";
import { findDeadLetters } from "../../src/delivery/dead-letters.ts";
import { newLogFile } from "../events/temporary-log.ts";
import { DELIVERED, fakeChannel, REFUSED } from "./fake-channel.ts";
import { NOTIFY, openHouse, type House } from "./house.ts";

function lettersOf(house: House) {
  return findDeadLetters(house.journal.store);
}

async function retryAll(house: House): Promise<void> {
  for (const { event_id, source, channel } of await lettersOf(house)) {
    await house.tell({ type: "ChannelDispatchRetryRequested", data: { event_id, source, channel } });
  }
  await house.settled();
}

test("what was given up is listed, the oldest first, each channel for itself", async () => {
  const channels = [fakeChannel("chat", () => REFUSED), fakeChannel("messaging", () => REFUSED), fakeChannel("ads")];
  await using house = await openHouse({ file: newLogFile(), channels });
  const notified = await house.tell(NOTIFY);
  await house.settled();
  const clicked = await house.clicks(1);
  await house.settled();
  const letters = await lettersOf(house);
  expect(letters.map(({ source }) => source)).toEqual([notified, clicked, clicked]);
  expect(letters.map(({ channel }) => channel).toSorted()).toEqual(["chat", "chat", "messaging"]);
  const abandoned = (await house.told("ChannelDispatchAbandoned"))[0];
  expect(letters[0]).toEqual({
    channel: "chat",
    event_id: (await house.told("NotificationRequested"))[0]?.id ?? "",
    source: notified,
    attempts: 1,
    refused: true,
    detail: "malformed",
    abandoned_at: abandoned?.time ?? "",
    position: abandoned?.position ?? 0,
  });
});

test("a retried letter is sent as the original, under its id, and is a letter no longer", async () => {
  const chat = fakeChannel("chat", (_dispatch, attempt) => (attempt === 1 ? REFUSED : DELIVERED));
  await using house = await openHouse({ file: newLogFile(), channels: [chat] });
  await house.clicks(1);
  await house.settled();
  await retryAll(house);
  expect(chat.sent.length).toBe(2);
  // The same id and time: a network that de-duplicates knows it again.
  expect(chat.sent[1]).toEqual(chat.sent[0] as (typeof chat.sent)[number]);
  const [click] = await house.told("LinkClicked");
  expect((await house.told("ChannelDispatched")).map(({ data }) => [data.event_id, data.lane])).toEqual([
    [click?.id ?? "", "direct"],
  ]);
  expect(await lettersOf(house)).toEqual([]);
  expect(house.projector.state("deliveries").chat.dead).toBe(0);
});

test("a letter given up again and again still names the event that it began with", async () => {
  const chat = fakeChannel("chat", () => REFUSED);
  await using house = await openHouse({ file: newLogFile(), channels: [chat] });
  const source = await house.clicks(1);
  await house.settled();
  await retryAll(house);
  await retryAll(house);
  expect(chat.sent.length).toBe(3);
  expect((await lettersOf(house)).map((letter) => letter.source)).toEqual([source]);
  expect(house.projector.state("deliveries").chat.dead).toBe(1);
});
