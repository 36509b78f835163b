// These tests run parts of the service inside the test process.
import { USUAL_CHANNELS } from "../harness/sample-click.ts";
import { describe, expect, test } from "bun:test";
import { pendingOf } from "../../projections/deliveries.ts";
import type { Click, DispatchResult } from "../../src/networks/network.ts";
import { WINDOW_DISPATCHES_MAX } from "../../src/delivery/outbox-window.ts";
import { EVENT_REQUESTS_MAX } from "../../src/delivery/outcome-recorder.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";
import {
  DELIVERED,
  fakeChannel,
  gate,
  IN_DOUBT,
  REFUSED,
  throttled,
  UNAVAILABLE,
  type FakeChannel,
} from "../harness/in-process/fake-channel.ts";
import { NOTIFY, openDelivery } from "../harness/in-process/delivery.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import type { Tracing } from "../../src/tracing/tracing.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

/** Fake channel that accepts clicks in batches; `answer` decides the outcome of each click. */
function batching(max: number, answer: (click: Click, batch: number) => DispatchResult = () => DELIVERED) {
  const batches: string[][] = [];
  const channel: FakeChannel = fakeChannel("ads");
  return {
    batches,
    channel: {
      ...channel,
      batch: {
        max,
        async send(clicks: readonly Click[]) {
          batches.push(clicks.map(({ id }) => id));
          return clicks.map((click) => answer(click, batches.length));
        },
      },
    },
  };
}

describe("a network that accepts batches", () => {
  test("receives waiting clicks in batches up to its limit, with an outcome for each", async () => {
    const { batches, channel } = batching(400);
    await using house = await openDelivery({ channels: [channel] });
    const first = await house.clicks(1_000);
    await house.settled();
    expect(Math.max(...batches.map(({ length }) => length))).toBe(400);
    expect(new Set(batches.flat()).size).toBe(1_000);
    expect(batches.flat()).toHaveLength(1_000);
    const delivered = await house.outcomes("DispatchSucceeded");
    expect(delivered.map(({ data }) => data.source).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 1_000 }, (_, at) => first + at),
    );
    const { clicks } = house.projector.state("deliveries").ads.lanes;
    expect(clicks).toMatchObject({ pending: 0, above: new Map(), retries: new Map() });
  });

  test("has each batch traced as one request with all clicks' traces and outcomes", async () => {
    const { channel } = batching(1_000, () => UNAVAILABLE);
    const traced: unknown[] = [];
    const tracing: Pick<Tracing, "dispatch"> = {
      dispatch: (about, traceparents) => ({ end: (outcomes) => traced.push([about, traceparents, outcomes]) }),
    };
    await using house = await openDelivery({ channels: [channel], tracing });
    const click: NewEvent = clickOf({ short_code: "a", channels: ["ads"] });
    const { last } = await house.eventLog.append("link-a", [click, click], { traceparent: "00-a-b-01" });
    await house.projector.until(last);
    await house.until(house.time.clock());
    const about = { channel: "ads", network: "fake ads", mode: "batch" };
    expect(traced).toEqual([[about, ["00-a-b-01", "00-a-b-01"], ["retryable", "retryable"]]]);
  });

  test("has one outcome event for a whole batch", async () => {
    const { batches, channel } = batching(1_000);
    await using house = await openDelivery({ channels: [channel] });
    const first = await house.clicks(1_000);
    await house.settled();
    expect(batches).toHaveLength(1);
    const events = await house.events("DispatchSucceeded");
    expect(events.map(({ data }) => data)).toEqual([
      {
        channel: "ads",
        lane: "clicks",
        low_watermark: first + 1_000,
        requests: [{ sources: [[first, first + 999]], attempt: 1, mode: "batch", status: 200, latency_ms: 0 }],
      },
    ]);
  });

  test("can refuse each click at length; the outcomes fill several events", async () => {
    const complaint = '"\u0001é'.repeat(200);
    const { channel } = batching(1_000, ({ id }) => {
      return { outcome: "refused", status: 400, detail: `${id} ${complaint}`, channel: false };
    });
    await using house = await openDelivery({ channels: [channel] });
    await house.clicks(1_000);
    await house.settled();
    expect(house.faults).toEqual([]);
    expect(new Set((await house.outcomes("DispatchAbandoned")).map(({ data }) => data.source)).size).toBe(1_000);
    const events = await house.events("DispatchAbandoned");
    expect(Math.max(...events.map(({ data }) => data.requests.length))).toBe(EVENT_REQUESTS_MAX);
  });

  test("receives only the failed clicks again", async () => {
    const failing = new Set<string>();
    const { batches, channel } = batching(50, (click, batch) => {
      if (batch > 1) return DELIVERED;
      if (failing.size < 3) failing.add(click.id);
      return failing.has(click.id) ? UNAVAILABLE : DELIVERED;
    });
    await using house = await openDelivery({ channels: [channel] });
    await house.clicks(50);
    await house.time.armed();
    expect(house.projector.state("deliveries").ads.lanes.clicks.pending).toBe(3);
    house.time.flow();
    await house.settled();
    // Because the batch failed, the dispatcher probes the network with one single click.
    const again = [...channel.sent.map(({ id }) => id), ...batches.slice(1).flat()];
    expect(again.sort()).toEqual([...failing].sort());
  });

  test("can refuse one click, which becomes a dead letter while the others are delivered", async () => {
    let bad: string | undefined;
    const { channel } = batching(50, ({ id }) => ((bad ??= id) === id ? REFUSED : DELIVERED));
    await using house = await openDelivery({ channels: [channel] });
    await house.clicks(20);
    await house.settled();
    expect(house.projector.state("deliveries").ads).toMatchObject({ dispatched: 19, dead: 1, suspended: null });
  });

  test("receives unasked clicks with the next request, without a counted attempt", async () => {
    const { batches, channel } = batching(50);
    const early = {
      ...channel,
      batch: {
        max: 50,
        async send(clicks: readonly Click[]): Promise<readonly DispatchResult[]> {
          const done = (await channel.batch.send(clicks)).slice(0, 2);
          return clicks.map((_click, at) => done[at] ?? { outcome: "retryable", detail: "not asked", unasked: true });
        },
      },
    };
    await using house = await openDelivery({ channels: [early] });
    await house.clicks(40);
    house.time.flow();
    await house.settled();
    expect(batches.length).toBe(20);
    const delivered = await house.outcomes("DispatchSucceeded");
    expect(new Set(delivered.map(({ data }) => data.attempt))).toEqual(new Set([1]));
    expect(await house.outcomes("DispatchFailed")).toEqual([]);
  });

  test("gets no request during the pause that its answer asks for", async () => {
    const { batches, channel } = batching(10, () => ({ outcome: "delivered", status: 200, pauseMs: 60_000 }));
    await using house = await openDelivery({ channels: [channel] });
    await house.clicks(20);
    expect(await house.time.armed()).toBeGreaterThan(29_000);
    expect(batches).toHaveLength(1);
    house.time.flow();
    await house.settled();
  });

  test("can answer for too few clicks; the others are in doubt", async () => {
    const { channel } = batching(50);
    const short = { ...channel, batch: { max: 50, send: async () => [DELIVERED] } };
    await using house = await openDelivery({ channels: [short] });
    await house.clicks(3);
    await house.settled();
    const { dispatched, in_doubt } = house.projector.state("deliveries").ads;
    expect(dispatched + in_doubt).toBe(3);
  });

  test("receives each click once if the service stops during a batch", async () => {
    const file = newLogFile();
    const held = gate();
    const { batches, channel } = batching(10);
    const slow = {
      ...channel,
      batch: {
        max: 10,
        async send(clicks: readonly Click[]) {
          const results = await channel.batch.send(clicks);
          await held.answer;
          return results;
        },
      },
    };
    {
      await using house = await openDelivery({ file, channels: [slow] });
      await house.clicks(25, ["ads"]);
      held.open();
    }
    await using again = await openDelivery({ file, channels: [channel] });
    await again.settled();
    expect(batches.flat()).toHaveLength(25);
    expect(new Set(batches.flat()).size).toBe(25);
  });
});

describe("a channel that cannot keep up", () => {
  const AFTER = { digestAfterMs: 30_000 };

  test("receives a new click by itself, not in a digest", async () => {
    const chat = fakeChannel("chat");
    await using house = await openDelivery({ channels: [], ...AFTER });
    await house.clicks(40, ["chat"]);
    house.time.advance(31_000);
    await using late = await openDelivery({ channels: [chat], time: house.time, ...AFTER });
    await late.clicks(1);
    await late.settled();
    expect(chat.sent.map(({ kind }) => kind)).toEqual(["click"]);
  });

  test("receives one digest of all waiting clicks once the oldest waits too long", async () => {
    const held = gate();
    const chat = fakeChannel("chat", () => (chat.sent.length === 1 ? held.answer : DELIVERED));
    await using house = await openDelivery({ channels: [chat], ...AFTER });
    await house.clicks(60);
    await chat.until(1);
    house.time.advance(31_000);
    held.open();
    await house.settled();
    expect(chat.sent.map(({ kind }) => kind)).toEqual(["click", "digest"]);
    expect(chat.sent[1]).toMatchObject({ clicks: 59, links: [{ shortCode: "a", clicks: 59 }] });
    const delivered = await house.outcomes("DispatchSucceeded");
    expect(delivered).toHaveLength(60);
    expect(new Set(delivered.slice(1).map(({ data }) => data.digest))).toEqual(new Set([chat.sent[1]?.id]));
    expect(delivered[0]?.data.digest).toBeUndefined();
  });

  test("receives a notification separately, before the digest", async () => {
    const held = gate();
    const chat = fakeChannel("chat", () => (chat.sent.length === 1 ? held.answer : DELIVERED));
    await using house = await openDelivery({ channels: [chat], ...AFTER });
    await house.clicks(10);
    await chat.until(1);
    house.time.advance(31_000);
    await house.append(NOTIFY);
    held.open();
    await house.settled();
    expect(chat.sent.map(({ kind }) => kind)).toEqual(["click", "notification", "digest"]);
  });

  test("receives a digest again if it was certainly not delivered", async () => {
    const held = gate();
    const chat = fakeChannel("chat", () => {
      if (chat.sent.length === 1) return held.answer;
      return chat.sent.length === 2 ? throttled(2_000) : DELIVERED;
    });
    await using house = await openDelivery({ channels: [chat], ...AFTER, random: () => 0 });
    await house.clicks(10);
    await chat.until(1);
    house.time.advance(31_000);
    held.open();
    await chat.until(2);
    await house.clicks(5);
    house.time.flow();
    await house.settled();
    const digests = chat.sent.filter(({ kind }) => kind === "digest");
    expect(digests.length).toBeGreaterThanOrEqual(2);
    expect(house.projector.state("deliveries").chat).toMatchObject({ dispatched: 15, dead: 0, in_doubt: 0 });
  });

  test("has all clicks of a digest in doubt, and none resent, after an unknown outcome", async () => {
    const held = gate();
    const chat = fakeChannel("chat", () =>
      chat.sent.length === 1 ? held.answer : { outcome: "in_doubt", detail: "no answer" },
    );
    await using house = await openDelivery({ channels: [chat], ...AFTER });
    await house.clicks(10);
    await chat.until(1);
    house.time.advance(31_000);
    held.open();
    await house.settled();
    expect(chat.sent).toHaveLength(2);
    expect(house.projector.state("deliveries").chat).toMatchObject({ dispatched: 1, in_doubt: 9 });
  });
});

describe("a failing network, probed with one click at a time", () => {
  test("leaves at most one digest and the probes in doubt", async () => {
    const held = gate();
    const chat = fakeChannel("chat", () => {
      if (chat.sent.length === 1) return held.answer;
      return chat.sent.length <= 11 ? IN_DOUBT : DELIVERED;
    });
    await using house = await openDelivery({ channels: [chat], digestAfterMs: 30_000 });
    await house.clicks(3_000);
    await chat.until(1);
    house.time.advance(31_000);
    house.time.flow();
    held.open();
    await house.settled();
    const { in_doubt, dispatched } = house.projector.state("deliveries").chat;
    expect(in_doubt).toBeLessThanOrEqual(WINDOW_DISPATCHES_MAX + 9);
    expect(in_doubt + dispatched).toBe(3_000);
    expect(chat.sent.slice(2, 11).map(({ kind }) => kind)).toEqual(Array.from({ length: 9 }, () => "click"));
    expect(chat.sent.at(-1)?.kind).toBe("digest");
  });

  test("uses up the attempts of few clicks", async () => {
    const { batches, channel } = batching(50, () => UNAVAILABLE);
    const ads = fakeChannel("ads", () => (ads.sent.length <= 20 ? UNAVAILABLE : DELIVERED));
    await using house = await openDelivery({ channels: [{ ...ads, batch: channel.batch }] });
    await house.clicks(200);
    house.time.flow();
    await ads.until(20);
    expect(batches).toHaveLength(1);
    // Although the outage was long, the dispatcher tried at most the first batch and twenty single clicks.
    expect((await house.outcomes("DispatchFailed")).length).toBeLessThanOrEqual(50 + 20);
  });
});

test("clicks that wait for a retry do not block others", async () => {
  const FAILING = 2_500;
  let failed = 0;
  const chat = fakeChannel("chat", (_dispatch, attempt) => {
    if (attempt > 1 || failed >= FAILING) return DELIVERED;
    failed++;
    // A network that answers 409 works and only refuses this click for now. So neither the pace nor the circuit breaker
    // delays other clicks.
    return failed % 4 === 0 ? DELIVERED : { outcome: "retryable", status: 409, detail: "later" };
  });
  await using house = await openDelivery({ channels: [chat], random: () => 0.999 });
  await house.clicks(FAILING + 500);
  await house.time.armed();
  const { lanes } = house.projector.state("deliveries").chat;
  expect(lanes.clicks.retries.size).toBeGreaterThan(1_000);
  expect(lanes.clicks.pending).toBeLessThan(FAILING);
  house.time.flow();
  await house.settled();
  expect(USUAL_CHANNELS.map((name) => pendingOf(house.projector.state("deliveries")[name]))).toEqual([0, 0, 0]);
});
