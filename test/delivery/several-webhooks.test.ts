// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventType, Recorded } from "../../events/event-types-and-codec.ts";
import type { WebhookChannel } from "../../events/channel-and-lane-names.ts";
import { findChannel, listChannels } from "../../projections/deliveries.ts";
import { findLetters } from "../../src/delivery/find-and-decide-dead-letters.ts";
import { readDispatches, toDispatchJson } from "../../src/delivery/undelivered-pages.ts";
import { updateSubscriptions } from "../../src/delivery/webhook-subscriptions.ts";
import { WINDOW_DISPATCHES_MAX } from "../../src/delivery/outbox-window.ts";
import { type NewEvent, STREAMS } from "../../src/log/event-log.ts";
import { compileFilter } from "../../src/networks/webhook-filter-expression.ts";
import { secret } from "../../src/platform/secret.ts";
import {
  DELIVERED,
  fakeChannel,
  REFUSED,
  UNAVAILABLE,
  type Answer,
  type FakeChannel,
} from "../harness/in-process/fake-channel.ts";
import { eventually, NOTIFY, openDelivery, type DeliveryHarness } from "../harness/in-process/delivery.ts";
import { fakeTime } from "../harness/in-process/fake-time.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";

const CRM = "webhook-crm";

const subscribed = (channel: WebhookChannel, ...types: EventType[]): NewEvent => ({
  type: "WebhookSubscribed",
  data: { ...(channel === "webhook" ? {} : { channel }), types, receiver: "mark" },
});

interface Options {
  readonly answer?: Answer;
  readonly filter?: string;
  readonly isInOrder?: boolean;
}

/** Fake receiver of a webhook, which recognises a repeat for ever. */
function webhook(name: WebhookChannel, { answer, filter, isInOrder = false }: Options = {}): FakeChannel {
  const matches = filter === undefined ? undefined : compileFilter(filter);
  const own = matches && {
    filter: (event: Recorded) => matches({ type: event.type, timestamp: event.time, data: event }),
  };
  return Object.assign(fakeChannel(name, answer), { recognisesMs: Infinity, isInOrder, ...own });
}

const positions = ({ sent }: FakeChannel): number[] =>
  sent.map((dispatch) => (dispatch.kind === "event" ? dispatch.event.position : NaN));

async function clickOn(house: DeliveryHarness, short_code: string, bot = false): Promise<number> {
  const data = { event: "click", domain: "go.example", short_code, original_url: "https://e.example", bot };
  const newEvent: NewEvent = { type: "LinkClicked", data: { ...data, channels: [] } };
  const { last } = await house.eventLog.append(STREAMS.link("go.example", short_code), [newEvent], { caller: "test" });
  await house.projector.until(last);
  return last;
}

/** Returns the dead letters of all channels, in the JSON that programs read. */
async function deadLettersOf({ store, projector }: DeliveryHarness) {
  const at = { deliveries: projector.state("deliveries"), position: projector.position };
  return (await readDispatches(store, await findLetters(store, at, { status: "dead" }))).map(toDispatchJson);
}

const mixed = (count: number): NewEvent[] =>
  Array.from({ length: count }, (_, at) => ({
    type: "LinkClicked",
    data: {
      event: "click",
      domain: "go.example",
      short_code: "a",
      original_url: "https://e.example",
      bot: at % 10 !== 0,
      channels: [],
    },
  }));

test("each webhook receives its own types after its own subscription", async () => {
  const [unnamed, crm] = [webhook("webhook"), webhook(CRM)];
  await using house = await openDelivery({ channels: [unnamed, crm] });
  await house.append(subscribed("webhook", "LinkClicked"));
  const first = await house.clicks(2, []);
  await house.append(subscribed(CRM, "LinkClicked", "NotificationRequested"));
  const both = await house.clicks(1, []);
  const notified = await house.append(NOTIFY);
  await house.append({ type: "WebhookUnsubscribed", data: { channel: CRM } });
  const last = await house.clicks(1, []);
  await house.settled("webhook", CRM);
  expect(positions(unnamed)).toEqual([first, first + 1, both, last]);
  expect(positions(crm)).toEqual([both, notified]);
  const outcomes = await house.outcomes("DispatchSucceeded");
  expect(new Set(outcomes.map(({ data, stream }) => `${data.channel} ${stream}`))).toEqual(
    new Set(["webhook delivery-webhook", "webhook-crm delivery-webhook-crm"]),
  );
});

test("a webhook that is down has a separate circuit and dead letters and blocks no other", async () => {
  const [up, down] = [webhook("webhook"), webhook(CRM, { answer: () => UNAVAILABLE })];
  await using house = await openDelivery({ channels: [up, down] });
  await house.append(subscribed("webhook", "LinkClicked"), subscribed(CRM, "LinkClicked"));
  const first = await house.clicks(20, []);
  await house.settled("webhook");
  expect(positions(up)).toEqual(Array.from({ length: 20 }, (_, at) => first + at));
  const state = () => house.projector.state("deliveries");
  await eventually(house.projector, () => findChannel(state(), CRM).circuit !== null);
  expect(state().webhook).toMatchObject({ circuit: null, dead: 0 });
  house.time.flow();
  await house.settled(CRM);
  expect([state().webhook.dead, findChannel(state(), CRM).dead]).toEqual([0, 20]);
  expect((await deadLettersOf(house)).every(({ channel }) => channel === CRM)).toBe(true);
});

test("filtered events are skipped without a request and share outcome events", async () => {
  const crm = webhook(CRM, { filter: "data.data.bot == `false`" });
  await using house = await openDelivery({ channels: [crm] });
  await house.append(subscribed(CRM, "LinkClicked"));
  const count = 2 * WINDOW_DISPATCHES_MAX + 500;
  const first = await house.append(...mixed(count));
  house.time.flow();
  await house.settled();
  const wanted = Array.from({ length: count / 10 }, (_, at) => first + 10 * at);
  expect(positions(crm)).toEqual(wanted);
  const state = findChannel(house.projector.state("deliveries"), CRM);
  expect([state.dispatched, state.skipped, state.dead]).toEqual([count / 10, count - count / 10, 0]);
  const skips = await house.events("DispatchSkipped");
  expect(new Set(skips.flatMap(({ data }) => data.requests.map(({ reason }) => reason)))).toEqual(
    new Set(["filtered"]),
  );
  expect(skips.length).toBeLessThan(20);
});

test("skips within a second share one outcome event", async () => {
  const crm = webhook(CRM, { filter: "data.data.bot == `false`" });
  await using house = await openDelivery({ channels: [crm] });
  await house.append(subscribed(CRM, "LinkClicked"));
  for (let at = 0; at < 5; at++) {
    await clickOn(house, "a", true);
    await house.until(house.time.clock() + 150);
  }
  expect(await house.events("DispatchSkipped")).toEqual([]);
  await house.until(house.time.clock() + 1_000);
  const [event, ...more] = await house.events("DispatchSkipped");
  expect([event?.data.requests.map(({ sources }) => sources), more]).toEqual([[[[2, 6]]], []]);
});

test("in order, a filtered event blocks no later one", async () => {
  let isUp = false;
  const answer: Answer = () => (isUp ? DELIVERED : UNAVAILABLE);
  const crm = webhook(CRM, { filter: "data.data.bot == `false`", isInOrder: true, answer });
  await using house = await openDelivery({ channels: [crm] });
  await house.append(subscribed(CRM, "LinkClicked"));
  const skipped = await clickOn(house, "a", true);
  const stuck = await clickOn(house, "a");
  await house.calm();
  expect([positions(crm), await house.events("DispatchSkipped")]).toEqual([[stuck], []]);
  const between = await clickOn(house, "a", true);
  const behind = await clickOn(house, "a");
  await house.until(house.time.clock() + 1_500);
  // A click without personal data is skipped even if it comes after a click that waits for a retry. Neither may be
  // posted.
  const skips = await house.outcomes("DispatchSkipped");
  expect(skips.map(({ data }) => data.source)).toEqual([skipped, between]);
  expect(new Set(positions(crm))).toEqual(new Set([stuck]));
  isUp = true;
  house.time.flow();
  await house.settled();
  expect(positions(crm).slice(-2)).toEqual([stuck, behind]);
});

test("a filter that fails makes a dead letter; a retry uses the current filter", async () => {
  const file = newLogFile();
  const time = fakeTime();
  const letters: string[] = [];
  {
    const crm = webhook(CRM, { filter: "starts_with(data.data.campaign, 's')" });
    await using house = await openDelivery({ file, time, channels: [crm] });
    await house.append(subscribed(CRM, "LinkClicked"));
    await clickOn(house, "a");
    await clickOn(house, "b");
    await house.until(time.clock() + 1_500);
    expect(crm.sent).toEqual([]);
    const found = await deadLettersOf(house);
    expect(found).toMatchObject([
      {
        channel: CRM,
        refused: true,
        detail: expect.stringMatching(/^the filter fails on it: Invalid type: starts_with/),
      },
      { channel: CRM },
    ]);
    letters.push(...found.map(({ event_id }) => event_id));
  }
  const crm = webhook(CRM, { filter: "data.data.short_code == 'b'" });
  await using house = await openDelivery({ file, time, channels: [crm] });
  const retry = (at: number): NewEvent => ({
    type: "DispatchRetryRequested",
    data: { event_id: letters[at] ?? "", source: 2 + at, channel: CRM },
  });
  await house.append(retry(0), retry(1));
  await house.settled();
  expect(positions(crm)).toEqual([3]);
  const state = findChannel(house.projector.state("deliveries"), CRM);
  expect([state.dispatched, state.skipped, state.dead]).toEqual([1, 1, 0]);
});

test("a channel test ignores the filter", async () => {
  const crm = webhook(CRM, { filter: "starts_with(data.data.nothing, 'a')" });
  await using house = await openDelivery({ channels: [crm] });
  const asked = await house.append({ type: "ChannelTestRequested", data: { channels: [CRM] } });
  expect(await house.delivery.settled(CRM, asked, 60_000)).toMatchObject({ status: "delivered" });
});

test("webhooks carry outcomes of other channels, but none of a webhook", async () => {
  const types: EventType[] = [
    "DispatchSucceeded",
    "DispatchFailed",
    "DispatchAbandoned",
    "ChannelSuspended",
    "CircuitOpened",
  ];
  const ads = fakeChannel("ads", (_, attempt) => (attempt === 1 ? UNAVAILABLE : REFUSED));
  const [unnamed, crm] = [webhook("webhook", { answer: () => REFUSED }), webhook(CRM)];
  await using house = await openDelivery({ channels: [ads, unnamed, crm] });
  await house.append(subscribed("webhook", ...types), subscribed(CRM, ...types));
  const click = await house.clicks(1, ["ads"]);
  house.time.flow();
  await house.settled();
  await house.calm();
  const about = await house.events("DispatchFailed", "DispatchAbandoned");
  const wanted = about.filter(({ data }) => data.channel === "ads").map(({ position }) => position);
  expect(wanted).toHaveLength(2);
  expect([positions(unnamed), positions(crm)]).toEqual([wanted, wanted]);
  expect(click).toBeLessThan(wanted[0] ?? 0);
  // The log records refusals by the unnamed webhook, but no webhook gets events about a webhook.
  expect(about.filter(({ data }) => data.channel === "webhook")).toHaveLength(2);
});

test("a dead letter of a carried retry names the retry's own event", async () => {
  const ads = fakeChannel("ads", () => REFUSED);
  const crm = webhook(CRM, { answer: () => REFUSED });
  await using house = await openDelivery({ channels: [ads, crm] });
  await house.append(subscribed(CRM, "DispatchRetryRequested"));
  const source = await house.clicks(1, ["ads"]);
  await house.settled();
  const [click] = await house.events("LinkClicked");
  const data = { event_id: click?.id ?? "", source, channel: "ads" } as const;
  const retry = await house.append({ type: "DispatchRetryRequested", data });
  await house.settled();
  expect(crm.sent).toMatchObject([{ kind: "event", event: { type: "DispatchRetryRequested", position: retry } }]);
  const letters = await deadLettersOf(house);
  expect(new Map(letters.map(({ channel, source: of }) => [channel, of]))).toEqual(
    new Map([
      ["ads", source],
      [CRM, retry],
    ] as const),
  );
});

test("a removed webhook is listed until none of its events is pending", async () => {
  const crm = webhook(CRM);
  const file = newLogFile();
  const time = fakeTime();
  const update = (house: DeliveryHarness, filter?: string) =>
    updateSubscriptions(
      house.context,
      filter === undefined ? [] : [{ name: CRM, url: secret("https://crm.example"), types: ["LinkClicked"], filter }],
      () => "mark",
    );
  {
    await using house = await openDelivery({ file, time });
    const listed = () => listChannels(house.projector.state("deliveries"));
    await update(house, "data.data.bot");
    await update(house, "data.data.bot");
    await update(house, "!data.data.bot");
    expect((await house.events("WebhookSubscribed")).map(({ data, stream }) => [stream, data])).toEqual(
      ["data.data.bot", "!data.data.bot"].map((filter) => [
        CRM,
        { channel: CRM, types: ["LinkClicked"], receiver: "mark", filter },
      ]),
    );
    await house.clicks(1, []);
    await update(house);
    expect((await house.events("WebhookUnsubscribed")).map(({ data }) => data)).toEqual([{ channel: CRM }]);
    expect(listed()).toEqual(["ads", "chat", "messaging", "webhook", CRM]);
  }
  await using house = await openDelivery({ file, time, channels: [crm] });
  await house.settled(CRM);
  expect(crm.sent).toHaveLength(1);
  expect(listChannels(house.projector.state("deliveries"))).toEqual(["ads", "chat", "messaging", "webhook"]);
});
