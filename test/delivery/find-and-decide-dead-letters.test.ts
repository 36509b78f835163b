// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { isFinal, isOutcome } from "../../events/dispatches-requested-by-events.ts";
import { positionsOf } from "../../events/position-ranges.ts";
import { deliveries, findChannel } from "../../projections/deliveries.ts";
import { fold } from "../../projections/projection.ts";
import { decideLetter, discardLetters, listAllLetters } from "../../src/delivery/find-and-decide-dead-letters.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { DELIVERED, fakeChannel, REFUSED } from "../harness/in-process/fake-channel.ts";
import { listLetters } from "../harness/in-process/list-dead-letters.ts";
import { NOTIFY, openDelivery, type DeliveryHarness } from "../harness/in-process/delivery.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";
import { logInMemory } from "../history/log-in-memory.ts";
import { histories } from "../projections/generate-history.ts";
import { HISTORY_CHANNELS } from "../projections/generate-delivery-history.ts";

function lettersOf(house: DeliveryHarness) {
  return listLetters(house.eventLog.store, house.projector);
}

async function retryAll(house: DeliveryHarness): Promise<void> {
  for (const { event_id, source, channel } of await lettersOf(house)) {
    await house.append({ type: "DispatchRetryRequested", data: { event_id, source, channel } });
  }
  await house.settled();
}

test("dead letters are listed oldest first, one for each channel", async () => {
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
    status: "dead",
    link: null,
    http_status: 400,
    doubtful_since: null,
    event_id: (await house.events("NotificationRequested"))[0]?.id ?? "",
    source: notified,
    attempts: 1,
    refused: true,
    detail: "malformed",
    ended_at: abandoned?.time ?? "",
    at: Date.parse(abandoned?.time ?? ""),
    failure: { asked: true, status: 400, refused: true },
    position: abandoned?.position ?? 0,
    requested_at: notified,
  });
});

test("a retried dead letter is sent unchanged under its id and is no longer listed", async () => {
  const chat = fakeChannel("chat", (_dispatch, attempt) => (attempt === 1 ? REFUSED : DELIVERED));
  await using house = await openDelivery({ channels: [chat] });
  await house.clicks(1);
  await house.settled();
  await retryAll(house);
  expect(chat.sent.length).toBe(2);
  const [retry] = await house.events("DispatchRetryRequested");
  // The retry repeats id and time of the first attempt, so that a network which de-duplicates recognises the repeat. It
  // also has an id of its own.
  expect(chat.sent).toEqual([chat.sent[0]!, { ...chat.sent[0]!, retryId: retry!.id }]);
  expect((await house.outcomes("DispatchSucceeded")).map(({ data }) => [data.source, data.lane])).toEqual([
    [retry?.position ?? 0, "direct"],
  ]);
  expect(await lettersOf(house)).toEqual([]);
  expect(house.projector.state("deliveries").chat.dead).toBe(0);
});

test("a dead letter still names its original event after repeated failed retries", async () => {
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

test("a retried or discarded letter stays unlisted if another process records its end again", async () => {
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
  const lettersOn = await listAllLetters(house.eventLog.store, house.projector.position);
  expect([...lettersOn("chat").dead]).toEqual([]);
});

test("only one of several concurrent decisions on a letter is accepted", async () => {
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

/**
 * Returns the events up to the first late end of a dispatch: an outcome that a second process recorded although the
 * dispatch had already succeeded or been skipped.
 */
function beforeLateEnd(events: readonly Recorded[]): readonly Recorded[] {
  const over = new Set<string>();
  const late = events.findIndex((event) => {
    if (!isOutcome(event) || !isFinal(event.type)) return false;
    const { channel, requests } = event.data;
    const own = requests.flatMap(({ sources }) => positionsOf(sources).map((source) => `${channel} ${source}`));
    const isLate = own.some((one) => over.has(one));
    if (event.type === "DispatchSucceeded" || event.type === "DispatchSkipped") for (const one of own) over.add(one);
    return isLate;
  });
  return late === -1 ? events : events.slice(0, late);
}

test("the log and the projection list the same dead letters and doubts for any history", async () => {
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(histories(), async (history) => {
      const events = beforeLateEnd(history.events);
      const state = fold(deliveries, deliveries.initial(), events);
      const lettersOn = await listAllLetters(logInMemory(events), Infinity);
      for (const channel of HISTORY_CHANNELS) {
        for (const status of ["dead", "in_doubt"] as const) {
          const listed = findChannel(state, channel).letters[status];
          expect([...lettersOn(channel)[status]]).toEqual([...listed]);
          compared += listed.size;
        }
      }
    }),
    { numRuns: 300 },
  );
  expect(compared).toBeGreaterThan(50);
});

test("letters missing from the projection's list are found in the log, and by id", async () => {
  await using house = await openDelivery({ channels: [fakeChannel("chat", () => REFUSED)] });
  for (let at = 0; at < 3; at++) await house.append(NOTIFY);
  await house.settled();
  const before = await lettersOf(house);
  house.projector.state("deliveries").chat.letters.dead.delete(1);
  expect(await lettersOf(house)).toEqual(before);
  const ids = before.slice(0, 2).map(({ event_id }) => event_id);
  const selection = { ids, filter: { status: "dead" } } as const;
  const decided = await discardLetters(house.context, selection, { why: "over" }, { caller: "ann" });
  expect(decided).toMatchObject({ done: 2, left: [] });
  const discarded = await house.events("DispatchDiscarded");
  expect(discarded.map(({ data }) => data)).toMatchObject(ids.map((event_id) => ({ event_id })));
});
