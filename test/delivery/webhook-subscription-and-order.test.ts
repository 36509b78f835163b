// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventType } from "../../events/event-types-and-codec.ts";
import type { Dispatch } from "../../src/networks/network.ts";
import { createOutboxReader, WINDOW_DISPATCHES_MAX } from "../../src/delivery/outbox-window.ts";
import { decideSubscription, updateSubscriptions } from "../../src/delivery/webhook-subscriptions.ts";
import { STREAMS, type EventLog, type NewEvent } from "../../src/log/event-log.ts";
import { secret } from "../../src/platform/secret.ts";
import {
  DELIVERED,
  fakeChannel,
  gate,
  UNAVAILABLE,
  type Answer,
  type FakeChannel,
} from "../harness/in-process/fake-channel.ts";
import { eventually, NOTIFY, openDelivery, passUntil, type DeliveryHarness } from "../harness/in-process/delivery.ts";
import { fakeTime } from "../harness/in-process/fake-time.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import { createReach } from "../harness/in-process/interrupt-log-access.ts";

const subscribed = (...types: EventType[]): NewEvent => ({
  type: "WebhookSubscribed",
  data: { types, receiver: "mark" },
});

/** Fake receiver of a webhook, which recognises a repeat for ever. */
function fakeWebhook(answer?: Answer, isInOrder = false): FakeChannel {
  return Object.assign(fakeChannel("webhook", answer), { recognisesMs: Infinity, isInOrder });
}

const positionOf = (dispatch: Dispatch): number => (dispatch.kind === "event" ? dispatch.event.position : NaN);
const positions = ({ sent }: FakeChannel): number[] => sent.map(positionOf);

async function clickOn(house: DeliveryHarness, short_code: string): Promise<number> {
  const data = { event: "click", domain: "go.example", short_code, original_url: "https://e.example", bot: false };
  const link = STREAMS.link("go.example", short_code);
  const newEvent: NewEvent = { type: "LinkClicked", data: { ...data, channels: [] } };
  const { last } = await house.eventLog.append(link, [newEvent], { caller: "test" });
  await house.projector.until(last);
  return last;
}

test("a webhook receives each event of its types after its subscription, and no other", async () => {
  const webhook = fakeWebhook();
  await using house = await openDelivery({ channels: [webhook] });
  await house.clicks(2);
  await house.append(subscribed("LinkClicked", "NotificationRequested"));
  const first = await house.clicks(3);
  await house.append({ type: "MessageRequested", data: { text: "not subscribed to" } });
  const notified = await house.append(NOTIFY);
  await house.settled("webhook");
  expect(positions(webhook)).toEqual([first, first + 1, first + 2, notified]);
  const [stored] = await house.events("NotificationRequested");
  expect(webhook.sent.at(-1)).toEqual({
    kind: "event",
    id: stored?.id ?? "",
    time: stored?.time ?? "",
    event: stored as never,
  });
  const outcomes = await house.outcomes("DispatchSucceeded");
  expect(new Set(outcomes.map(({ data, stream }) => `${data.channel} ${data.lane} ${stream}`))).toEqual(
    new Set(["webhook events delivery-webhook"]),
  );
});

test("a new subscription applies from its position; earlier requests are still delivered", async () => {
  const file = newLogFile();
  const time = fakeTime();
  {
    await using house = await openDelivery({ file, time });
    await house.append(subscribed("LinkClicked"));
    await house.clicks(1, []);
    await house.append(subscribed("NotificationRequested"));
    await house.clicks(1, []);
    await house.append(NOTIFY, { type: "WebhookUnsubscribed", data: {} }, NOTIFY);
  }
  const webhook = fakeWebhook();
  await using house = await openDelivery({ file, time, channels: [webhook] });
  await house.settled("webhook");
  expect(positions(webhook)).toEqual([2, 5]);
  expect(house.projector.state("deliveries").webhook.lanes.events.subscriptions).toEqual([{ from: 7, types: [] }]);
});

test("requests of a former subscription survive a restart, even if partly delivered", async () => {
  const file = newLogFile();
  const time = fakeTime();
  {
    await using house = await openDelivery({ file, time });
    await house.append(subscribed("LinkClicked"));
    await house.clicks(2, []);
    await house.append(subscribed("NotificationRequested"));
  }
  {
    // The receiver accepts each event and asks for a pause of an hour.
    const webhook = fakeWebhook(() => ({ outcome: "delivered", status: 200, pauseMs: 3_600_000 }));
    await using house = await openDelivery({ file, time, channels: [webhook] });
    await webhook.until(1);
    await house.calm();
    expect(positions(webhook)).toEqual([2]);
  }
  const webhook = fakeWebhook();
  await using house = await openDelivery({ file, time, channels: [webhook] });
  await house.until(time.clock() + 60_000);
  expect(positions(webhook)).toEqual([3]);
});

test("a webhook does not carry its own outcomes, even if subscribed to their types", async () => {
  let fails = true;
  const webhook = fakeWebhook(() => (fails ? UNAVAILABLE : DELIVERED));
  await using house = await openDelivery({ channels: [webhook] });
  await house.append(subscribed("CircuitOpened", "CircuitClosed", "NotificationRequested"));
  for (let at = 0; at < 6; at++) await house.append(NOTIFY);
  await eventually(house.projector, () => house.projector.state("deliveries").webhook.circuit !== null);
  const other = await house.append({
    type: "CircuitOpened",
    data: { channel: "chat", failures: 5, until: "2026-11-20T10:00:00.000Z" },
  });
  fails = false;
  house.time.flow();
  await house.settled("webhook");
  const circuits = (await house.events("CircuitOpened", "CircuitClosed")).map(({ data }) => data.channel);
  expect(circuits.filter((channel) => channel === "webhook").length).toBeGreaterThan(1);
  const carried = webhook.sent.filter(
    ({ kind, ...one }) => kind === "event" && JSON.stringify(one).includes("Circuit"),
  );
  expect([...new Set(carried.map(positionOf))]).toEqual([other]);
});

test("the outbox reader returns nothing beyond the requested position, even if it read further", async () => {
  await using house = await openDelivery();
  await house.clicks(3, []);
  const reader = createOutboxReader(house.store);
  const types = ["LinkClicked"];
  const read = async (from: number, to?: number) =>
    (await reader.read({ types, from, ...(to === undefined ? {} : { to }) })).events.map(({ position }) => position);
  expect(await read(1)).toEqual([1, 2, 3]);
  expect(await read(1, 2)).toEqual([1, 2]);
  expect(await read(2, 2)).toEqual([2]);
});

test("each event is sent by itself, however far the webhook lags", async () => {
  const webhook = fakeWebhook();
  const time = fakeTime();
  const file = newLogFile();
  {
    await using house = await openDelivery({ file, time });
    await house.append(subscribed("LinkClicked"));
    await house.clicks(30, []);
  }
  time.advance(3_600_000);
  await using house = await openDelivery({ file, time, channels: [webhook], digestAfterMs: 30_000 });
  await house.settled("webhook");
  expect(webhook.sent.map(({ kind }) => kind)).toEqual(Array.from({ length: 30 }, () => "event"));
});

test("more events than the window holds are delivered once each", async () => {
  const EVENTS = 2 * WINDOW_DISPATCHES_MAX + 500;
  const webhook = fakeWebhook();
  await using house = await openDelivery({ channels: [webhook] });
  await house.append(subscribed("LinkClicked"));
  const first = await house.clicks(EVENTS, []);
  await house.settled("webhook");
  expect(positions(webhook).toSorted((a, b) => a - b)).toEqual(Array.from({ length: EVENTS }, (_, at) => first + at));
});

test("in order, an event waits for an earlier one of its stream; other streams continue", async () => {
  const failing = new Set<string>();
  const webhook = fakeWebhook((dispatch) => {
    const isFailing = dispatch.kind === "event" && failing.has(dispatch.event.stream);
    return isFailing ? { outcome: "retryable", status: 429, detail: "later", retryAfterMs: 1_000 } : DELIVERED;
  }, true);
  await using house = await openDelivery({ channels: [webhook] });
  await house.append(subscribed("LinkClicked"));
  failing.add("link-go.example/a");
  const stuck = await clickOn(house, "a");
  await house.calm();
  const behind = [await clickOn(house, "a"), await clickOn(house, "a")];
  const others = [await clickOn(house, "b"), await clickOn(house, "b")];
  // The pause after a 429 applies to the whole channel, so time must pass before other events are sent.
  await house.until(house.time.clock() + 900);
  failing.clear();
  await house.until(house.time.clock() + 60_000);
  expect(positions(webhook).filter((position) => position !== stuck && !others.includes(position))).toEqual(behind);
  const arrived = positions(webhook);
  expect(arrived.indexOf(behind[0] ?? 0)).toBeGreaterThan(arrived.lastIndexOf(stuck));
  expect(arrived.filter((position) => others.includes(position))).toEqual(others);
});

test("in order, each stream has one event in flight, and streams run in parallel", async () => {
  const gates = new Map<number, ReturnType<typeof gate>>();
  let isGated = false;
  const webhook = fakeWebhook((dispatch) => {
    if (!isGated) return DELIVERED;
    const opened = gate();
    gates.set(positionOf(dispatch), opened);
    return opened.answer;
  }, true);
  await using house = await openDelivery({ channels: [webhook] });
  await house.append(subscribed("LinkClicked"));
  // With these successes the dispatcher learns to send several requests at once.
  for (let at = 0; at < 20; at++) await clickOn(house, "first");
  await house.settled("webhook");
  const from = webhook.sent.length;
  const since = () => positions(webhook).slice(from);
  isGated = true;
  const [a1, a2, b1, b2] = [
    await clickOn(house, "a"),
    await clickOn(house, "a"),
    await clickOn(house, "b"),
    await clickOn(house, "b"),
  ];
  await house.calm();
  expect(since()).toEqual([a1, b1]);
  gates.get(b1)?.open();
  await webhook.until(from + 3);
  expect(since()).toEqual([a1, b1, b2]);
  gates.get(a1)?.open();
  await webhook.until(from + 4);
  expect(since().at(-1)).toBe(a2);
  for (const opened of gates.values()) opened.open();
  await house.settled("webhook");
});

test("in order, a dead letter no longer blocks its stream", async () => {
  const webhook = fakeWebhook((dispatch, attempt) => {
    return positionOf(dispatch) === 2 && attempt <= 8 ? UNAVAILABLE : DELIVERED;
  }, true);
  await using house = await openDelivery({ channels: [webhook] });
  await house.append(subscribed("LinkClicked"));
  const given = await clickOn(house, "a");
  const next = await clickOn(house, "a");
  expect(given).toBe(2);
  house.time.flow();
  await house.settled("webhook");
  expect(positions(webhook)).toEqual([...Array.from({ length: 8 }, () => given), next]);
  expect(house.projector.state("deliveries").webhook.dead).toBe(1);
  const [event] = await house.events("LinkClicked");
  await house.append({
    type: "DispatchRetryRequested",
    data: { event_id: event?.id ?? "", source: given, channel: "webhook" },
  });
  await house.settled("webhook");
  expect(webhook.sent.at(-1)).toMatchObject({ kind: "event", id: event?.id ?? "", event: { position: given } });
});

test("a channel test reaches a webhook as its event", async () => {
  const webhook = fakeWebhook();
  await using house = await openDelivery({ channels: [webhook] });
  const asked = await house.append({ type: "ChannelTestRequested", data: { channels: ["webhook"] } });
  expect(await house.delivery.settled("webhook", asked, 60_000)).toMatchObject({ status: "delivered" });
  expect(webhook.sent).toMatchObject([{ kind: "event", event: { type: "ChannelTestRequested", position: asked } }]);
});

test.each<NewEvent<"PersonForgotten" | "PersonalDataExpired">>([
  { type: "PersonForgotten", data: { hashes: [], keys: [] } },
  { type: "PersonalDataExpired", data: { before: "2026-11-01", days: 1 } },
])("after $type, a retry carries no erased personal data", async (erasure) => {
  const webhook = fakeWebhook((_dispatch, attempt) => (attempt === 1 ? UNAVAILABLE : DELIVERED));
  let isErased = false;
  const wrap = (eventLog: EventLog): EventLog => {
    const { store } = eventLog;
    return {
      ...eventLog,
      store: {
        ...store,
        async *read(...args: Parameters<typeof store.read>) {
          for await (const event of store.read(...args)) {
            yield isErased ? { ...event, meta: { ...event.meta, erased: true } } : event;
          }
        },
      },
    };
  };
  await using house = await openDelivery({ channels: [webhook], wrap });
  await house.append(subscribed("LinkClicked", erasure.type));
  await house.clicks(1, []);
  await webhook.until(1);
  // From now on the clicks are read without personal data, as after the deletion of their key.
  isErased = true;
  await house.append(erasure);
  house.time.flow();
  await house.settled("webhook");
  expect(webhook.sent.map((one) => one.kind === "event" && one.event.type)).toContain(erasure.type);
  const clicks = webhook.sent.flatMap((one) =>
    one.kind === "event" && one.event.type === "LinkClicked" ? one.event : [],
  );
  expect(clicks.map(({ meta }) => meta.erased)).toEqual([undefined, true]);
});

test("a webhook that answers 410 is suspended, and its events wait", async () => {
  let isGone = true;
  const webhook = fakeWebhook(() =>
    isGone ? { outcome: "refused", status: 410, detail: "gone", channel: true } : DELIVERED,
  );
  await using house = await openDelivery({ channels: [webhook] });
  await house.append(subscribed("LinkClicked"));
  const first = await house.clicks(3, []);
  await house.untilAnnounced(1);
  expect(house.announced[0]?.[0]).toContain("webhook");
  await house.calm();
  expect(webhook.sent.length).toBe(1);
  isGone = false;
  await house.append({ type: "ChannelResumed", data: { channel: "webhook", why: "by_hand" } });
  await house.settled("webhook");
  expect(positions(webhook)).toEqual([first, first, first + 1, first + 2]);
});

test("the next dispatcher repeats events that may have arrived, without claims or doubts", async () => {
  const file = newLogFile();
  const time = fakeTime();
  const opened = gate();
  const still = createReach();
  const [first, second] = [fakeWebhook(() => opened.answer), fakeWebhook()];
  await using one = await openDelivery({ file, time, channels: [first], instance: "one", wrap: still.wrap });
  await using two = await openDelivery({ file, time, channels: [second], instance: "two" });
  await one.append(subscribed("LinkClicked"));
  const event = await one.clicks(1, []);
  await first.until(1);
  still.standStill();
  await passUntil(time.clock() + 17_000, time, [one, two]);
  await two.settled("webhook");
  expect([positions(first), positions(second)]).toEqual([[event], [event]]);
  expect(await two.events("DispatchClaimed", "DispatchInDoubt")).toEqual([]);
  opened.open();
  still.goOn();
  await passUntil(time.clock() + 17_000, time, [one, two]);
});

const WANTED = { types: ["LinkClicked"], receiver: "mark" };
const CURRENT = { from: 1, ...WANTED };

test.each([
  ["none recorded, none wanted", undefined, undefined, []],
  ["none recorded", undefined, WANTED, [{ type: "WebhookSubscribed", data: WANTED }]],
  ["no change", CURRENT, WANTED, []],
  ["other types", { ...CURRENT, types: ["RunStarted"] }, WANTED, [{ type: "WebhookSubscribed", data: WANTED }]],
  ["another receiver", { ...CURRENT, receiver: "other" }, WANTED, [{ type: "WebhookSubscribed", data: WANTED }]],
  ["none wanted", CURRENT, undefined, [{ type: "WebhookUnsubscribed", data: {} }]],
  ["ended, none wanted", { from: 9, types: [] }, undefined, []],
  ["ended", { from: 9, types: [] }, WANTED, [{ type: "WebhookSubscribed", data: WANTED }]],
] as const)("a subscription is recorded only if it changes: %s", (_, current, wanted, events) => {
  expect(decideSubscription("webhook", current, wanted && { ...wanted, types: [...wanted.types] })).toEqual(
    events as never,
  );
});

test("a subscription is recorded despite concurrent appends to its stream", async () => {
  await using house = await openDelivery();
  const outcome: NewEvent = { type: "ChannelResumed", data: { channel: "webhook", why: "by_hand" } };
  const eventLog: EventLog = {
    ...house.eventLog,
    async append(...args) {
      await house.eventLog.append(STREAMS.delivery("webhook"), [outcome], { caller: "another instance" });
      return house.eventLog.append(...args);
    },
  };
  const context = { ...house.context, eventLog, sleep: async () => {} };
  const wanted = {
    name: "webhook",
    url: secret("https://receiver.example"),
    types: ["LinkClicked"],
    filter: undefined,
  } as const;
  await updateSubscriptions(context, [wanted], () => "mark");
  expect(house.projector.state("deliveries").webhook.lanes.events.subscriptions).toMatchObject([WANTED]);
});
