// On the memory harness.
import { expect, test } from "bun:test";
import { decideLetter, findDeadLetters } from "../../src/delivery/dead-letters.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { DELIVERED, fakeChannel, REFUSED } from "../harness/memory/fake-channel.ts";
import { NOTIFY, openDelivery, type DeliveryHarness } from "../harness/memory/delivery.ts";
import { outcomeOf } from "../harness/memory/outcomes.ts";

function lettersOf(house: DeliveryHarness) {
  return findDeadLetters(house.eventLog.store);
}

async function retryAll(house: DeliveryHarness): Promise<void> {
  for (const { event_id, source, channel } of await lettersOf(house)) {
    await house.append({ type: "DispatchRetryRequested", data: { event_id, source, channel } });
  }
  await house.settled();
}

test("what was given up is listed, the oldest first, each channel for itself", async () => {
  const channels = [fakeChannel("chat", () => REFUSED), fakeChannel("messaging", () => REFUSED), fakeChannel("ads")];
  await using house = await openDelivery({ channels });
  const notified = await house.append(NOTIFY);
  await house.settled();
  const clicked = await house.clicks(1);
  await house.settled();
  const letters = await lettersOf(house);
  expect(letters.map(({ source }) => source)).toEqual([notified, clicked, clicked]);
  expect(letters.map(({ channel }) => channel).toSorted()).toEqual(["chat", "chat", "messaging"]);
  const abandoned = (await house.outcomes("DispatchAbandoned"))[0];
  expect(letters[0]).toEqual({
    channel: "chat",
    event_id: (await house.events("NotificationRequested"))[0]?.id ?? "",
    source: notified,
    attempts: 1,
    refused: true,
    detail: "malformed",
    abandoned_at: abandoned?.time ?? "",
    position: abandoned?.position ?? 0,
    requested_at: notified,
  });
});

test("a retried letter is sent as the original, under its id, and is a letter no longer", async () => {
  const chat = fakeChannel("chat", (_dispatch, attempt) => (attempt === 1 ? REFUSED : DELIVERED));
  await using house = await openDelivery({ channels: [chat] });
  await house.clicks(1);
  await house.settled();
  await retryAll(house);
  expect(chat.sent.length).toBe(2);
  // The same id and time: a network that de-duplicates knows it again.
  expect(chat.sent[1]).toEqual(chat.sent[0] as (typeof chat.sent)[number]);
  const [retry] = await house.events("DispatchRetryRequested");
  expect((await house.outcomes("DispatchSucceeded")).map(({ data }) => [data.source, data.lane])).toEqual([
    [retry?.position ?? 0, "direct"],
  ]);
  expect(await lettersOf(house)).toEqual([]);
  expect(house.projector.state("deliveries").chat.dead).toBe(0);
});

test("a letter given up again and again still names the event that it began with", async () => {
  const chat = fakeChannel("chat", () => REFUSED);
  await using house = await openDelivery({ channels: [chat] });
  const source = await house.clicks(1);
  await house.settled();
  await retryAll(house);
  await retryAll(house);
  expect(chat.sent.length).toBe(3);
  expect((await lettersOf(house)).map((letter) => letter.source)).toEqual([source]);
  expect(house.projector.state("deliveries").chat.dead).toBe(1);
});

test("what was decided of a letter stands, also when another process records once more that it was given up", async () => {
  await using house = await openDelivery();
  const source = await house.clicks(2, ["chat"]);
  const gaveUp = (source: number): NewEvent => {
    return outcomeOf("DispatchAbandoned", { source, channel: "chat", lane: "clicks", detail: "", refused: true });
  };
  await house.append(gaveUp(source), gaveUp(source + 1));
  const [taken, discarded] = await lettersOf(house);
  if (taken === undefined || discarded === undefined) throw new Error("there are no letters");
  const { channel } = taken;
  const of = (letter: typeof taken) => ({ event_id: letter.event_id, source: letter.source, channel });
  await house.append(
    { type: "DispatchRetryRequested", data: of(taken) },
    { type: "DispatchDiscarded", data: { ...of(discarded), why: "over" } },
  );
  expect(await lettersOf(house)).toEqual([]);
  expect(house.projector.state("deliveries").chat.dead).toBe(0);
  await house.append(gaveUp(source), gaveUp(source + 1));
  expect(await lettersOf(house)).toEqual([]);
});

test("of all that is decided of one letter at the same moment, one stands, and its maker knows", async () => {
  const chat = fakeChannel("chat", (_dispatch, attempt) => (attempt === 1 ? REFUSED : DELIVERED));
  await using house = await openDelivery({ channels: [chat] });
  await house.clicks(1);
  await house.settled();
  const [letter] = await lettersOf(house);
  if (letter === undefined) throw new Error("there is no letter");
  const { event_id, source, channel } = letter;
  const retry = { type: "DispatchRetryRequested", data: { event_id, source, channel } } as const;
  const discard = { type: "DispatchDiscarded", data: { event_id, source, channel, why: "over" } } as const;
  const made = [discard, retry, discard, retry];
  const won = await Promise.all(
    made.map((newEvent) => decideLetter(house.eventLog, letter, newEvent, { caller: "ann" })),
  );
  expect(won.filter(Boolean)).toHaveLength(1);
  const stands = await house.events("DispatchRetryRequested", "DispatchDiscarded");
  expect(stands.map(({ type }) => type)).toEqual(made.filter((_, at) => won[at]).map(({ type }) => type));
  expect(house.projector.state("deliveries").chat.dead).toBe(0);
});
