// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/event-types-and-codec.ts";
import { deliveries as projection } from "../../projections/deliveries.ts";
import { fold } from "../../projections/projection.ts";
import { drainInWords } from "../../src/delivery/channel-backlog-and-undelivered.ts";
import {
  calculateLag,
  type Measured,
  readOldestPending,
  readRequested,
  readTail,
} from "../../src/delivery/channel-lag.ts";
import { formatDuration } from "../../src/platform/format-numbers-and-lists.ts";
import { runCommand } from "../../src/commands/shared/command.ts";
import type { Terminal } from "../../src/commands/shared/terminal-answers-and-exit-codes.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { openCommands, timeAt, type CommandHarness } from "../harness/in-process/commands.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { deliveries } from "../harness/in-process/operation-commands.ts";

const LINK = STREAMS.link("go.example", "x");

const click = (...channels: ("ads" | "chat")[]): NewEvent => clickOf({ channels });

const about = (source: number) => ({ source, channel: "chat", lane: "clicks", low_watermark: 1 }) as const;
const delivered = (source: number) => outcomeOf("DispatchSucceeded", { ...about(source), latency_ms: 1 });
const failed = (source: number, status = 503) =>
  outcomeOf("DispatchFailed", { ...about(source), status, detail: "", retry_at: timeAt(60) });
const doubted = (source: number) => outcomeOf("DispatchInDoubt", { ...about(source), detail: "" });
const skipped = (source: number) => outcomeOf("DispatchSkipped", { ...about(source), reason: "too_old" });

const CHAT = STREAMS.delivery("chat");
const at = (position: number): number => Date.parse(timeAt(position));

async function laneOf(store: EventStore<Event>) {
  const events: Recorded[] = await Array.fromAsync(store.read());
  return fold(projection, projection.initial(), events).chat.lanes.clicks;
}

describe("rates read from the end of the log", () => {
  test("the rate counts the dispatches settled in the last five minutes, without failed attempts", async () => {
    await using world = await openCommands();
    await world.append(LINK, [click("chat"), click("chat"), click("chat"), click("chat", "ads")]);
    // These outcomes are recorded at the minutes 5, 6, 7, 8, 9 and 10.
    await world.append(CHAT, [delivered(1), failed(2), skipped(2), delivered(3), delivered(3), doubted(4)]);
    expect((await readTail(world.store, "chat", at(10))).settled.perMinute).toBe(4 / 5);
    expect((await readTail(world.store, "chat", at(10) + 1)).settled.perMinute).toBe(3 / 5);
    expect((await readTail(world.store, "chat", at(14))).settled.perMinute).toBe(2 / 5);
    expect((await readTail(world.store, "ads", at(10))).settled.perMinute).toBe(0);
    expect(await requestedAt(world, 6)).toEqual({
      ads: 1 / 5,
      chat: 4 / 5,
    });
    expect(await requestedAt(world, 8)).toEqual({
      ads: 1 / 5,
      chat: 2 / 5,
    });
  });

  test("the newest rate is that of the last five seconds", async () => {
    await using world = await openCommands();
    await world.append(LINK, [click("chat"), click("chat"), click("chat")]);
    await world.append(CHAT, [delivered(1), delivered(2), delivered(3)]);
    expect((await readTail(world.store, "chat", at(6))).settled).toEqual({ perMinute: 3 / 5, newestPerMinute: 12 });
    expect((await readTail(world.store, "chat", at(6) + 5_001)).settled.newestPerMinute).toBe(0);
    expect((await readRequested(world.store, at(3))).get("chat")).toEqual({ perMinute: 3 / 5, newestPerMinute: 12 });
  });

  test("for more than ten thousand events, the rate covers the time that they span", async () => {
    await using world = await openCommands();
    // Appends a thousand events that all have the same time, and a minute later ten thousand more.
    const thousand = (from: number) => Array.from({ length: 1_000 }, (_, index) => delivered(from + index));
    for (let round = 0; round < 11; round++) {
      if (round === 1) await world.append(STREAMS.requests, [click()]);
      await appendAtOnce(world, thousand(1 + round * 1_000));
    }
    const { settled } = await readTail(world.store, "chat", at(2) + 30_000);
    expect(settled.perMinute).toBe(10_000 / 0.5);
    expect((await readTail(world.store, "chat", at(2))).settled.perMinute).toBe(10_000 * 60);
  });

  test.each<[string, NewEvent[], number]>([
    ["none without attempts", [], 0],
    ["none after a success", [failed(1), failed(1), delivered(1)], 0],
    ["only after the last success", [failed(1), delivered(1), failed(2), doubted(2)], 2],
    ["a 429 does not count", [delivered(1), failed(2), failed(2, 429), failed(2)], 2],
    ["a skip does not count", [delivered(1), failed(2), skipped(3), failed(2)], 2],
  ])("failures in a row: %s", async (_, newEvents, count) => {
    await using world = await openCommands();
    await world.append(LINK, [click("chat"), click("chat"), click("chat")]);
    await world.append(CHAT, newEvents);
    expect((await readTail(world.store, "chat", at(8))).failuresInARow).toBe(count);
  });

  test("the oldest pending click is found, before its first attempt or between attempts", async () => {
    await using world = await openCommands();
    const oldest = async () => readOldestPending(world.store, "chat", "clicks", await laneOf(world.store));
    expect(await oldest()).toBeUndefined();
    await world.append(LINK, [click("ads"), click("chat"), click("chat"), click("chat")]);
    expect(await oldest()).toBe(timeAt(2));
    await world.append(CHAT, [delivered(3), delivered(2)]);
    expect(await oldest()).toBe(timeAt(4));
    await world.append(CHAT, [{ ...failed(4), data: { ...failed(4).data, low_watermark: 5 } }]);
    await world.append(LINK, [click("chat")]);
    expect(await oldest()).toBe(timeAt(4));
    await world.append(CHAT, [delivered(4), delivered(8)]);
    expect(await oldest()).toBeUndefined();
  });
});

async function requestedAt({ store }: CommandHarness, position: number) {
  const requested = [...(await readRequested(store, at(position)))];
  return Object.fromEntries(requested.map(([channel, { perMinute }]) => [channel, perMinute]));
}

async function appendAtOnce({ store }: CommandHarness, newEvents: readonly NewEvent[]): Promise<void> {
  await createEventLog(store, makeId).append(CHAT, newEvents, { caller: "tests" });
}

const rate = (perMinute: number, newestPerMinute = 0) => ({ perMinute, newestPerMinute });

describe("the lag of a channel", () => {
  const measured: Measured = {
    channel: "chat",
    backlog: 30,
    suspended: null,
    configured: true,
    oldest: timeAt(1),
    settled: { perMinute: 12, newestPerMinute: 0 },
    requested: { perMinute: 2, newestPerMinute: 0 },
    failuresInARow: 0,
    now: at(3),
  };

  test.each<[string, Partial<Measured>, number | null]>([
    ["from the rate of the last minutes", {}, 150],
    ["also while as many are requested as end", { requested: rate(12) }, 150],
    ["also after a burst, of which one is left", { backlog: 1, requested: rate(3.6), settled: rate(3.4) }, 18],
    ["no estimate while the backlog grows", { requested: rate(13, 60), settled: rate(12, 48) }, null],
    ["no estimate while nothing ends", { settled: rate(0), requested: rate(0) }, null],
    ["zero if nothing is pending", { backlog: 0, requested: rate(50) }, 0],
  ])("estimates the seconds until drained: %s", (_, more, seconds) => {
    expect(calculateLag({ ...measured, ...more }).drained_in_seconds).toBe(seconds);
  });

  const SUSPENSION = { since: timeAt(1), detail: "archived", network: "slack", credential: "h" } as const;
  test.each<[string, Partial<Measured>]>([
    ["–", { backlog: 0 }],
    ["2 min 30 s", {}],
    ["not at this rate", { requested: rate(13, 60) }],
    ["not at this rate", { settled: rate(0) }],
    ["not while suspended", { settled: rate(0), suspended: SUSPENSION }],
  ])("is shown in words: %s", (words, more) => {
    expect(drainInWords(calculateLag({ ...measured, ...more }))).toBe(words);
  });

  test("contains the age of the oldest click, never below zero", () => {
    expect(calculateLag(measured).oldest_click_seconds).toBe(120);
    expect(calculateLag({ ...measured, now: 0 }).oldest_click_seconds).toBe(0);
    expect(calculateLag({ ...measured, oldest: undefined }).oldest_click_seconds).toBeNull();
  });

  test.each([
    [0, "0 s"],
    [59, "59 s"],
    [60, "1 min"],
    [119, "1 min 59 s"],
    [7_500, "2 h 5 min"],
    [86_400 * 3 + 3_599, "3 d"],
  ])("shows %d seconds as %s", (seconds, words) => {
    expect(formatDuration(seconds)).toBe(words);
  });
});

describe("deliveries lag", () => {
  test("shows each channel on a line, and as JSON", async () => {
    const configured = { CHAT_WEBHOOK_URL: "https://hooks.slack.com/services/T/B/x" };
    await using world = await openCommands(Date.now() - 5.5 * 60_000, configured);
    await world.append(LINK, [click("chat"), click("chat")]);
    await world.append(CHAT, [
      delivered(1),
      failed(2),
      {
        type: "ChannelSuspended",
        data: { channel: "chat", network: "slack", detail: "archived", credential: "hash" },
      },
    ]);
    const { code, out } = await world.run(deliveries, "lag");
    expect(code).toBe(0);
    const since = (await Array.fromAsync(world.store.read({ from: 5 })))[0]?.time ?? "";
    expect(out).toMatch(/^channel {4}backlog {2}oldest click {2}settled\/min {2}requested\/min {2}drained in +state\n/);
    expect(out).toMatch(
      new RegExp(`\\nchat {7}1 {8}3 min 3\\d s +0.2 +0.4 +not while suspended +suspended since ${since}\\n`),
    );
    expect(out).toMatch(/\nmessaging {2}0 +0 +0 +–\nwebhook {4}0 +0 +0 +–\n\(as of position 5, .*Z\)\n$/);
    const json = JSON.parse((await world.run(deliveries, "lag", "--json", "--channel", "chat")).out) as object;
    expect(json).toMatchObject({
      channels: [
        {
          channel: "chat",
          backlog: 1,
          settled_per_minute: 0.2,
          requested_per_minute: 0.4,
          drained_in_seconds: null,
          failures_in_a_row: 1,
          suspended: { since, detail: "archived" },
        },
      ],
    });
    expect(JSON.stringify(json)).not.toContain("hash");
  });

  test("--watch repeats the report with new events until it is interrupted", async () => {
    await using world = await openCommands();
    await world.append(LINK, [click("chat")]);
    const interrupt = new AbortController();
    const backlogs: number[] = [];
    const terminal: Terminal = {
      env: world.env,
      out: (text) => {
        const { channels } = JSON.parse(text) as { channels: { backlog: number }[] };
        backlogs.push(channels[0]?.backlog ?? -1);
        if (backlogs.length === 1) void world.append(LINK, [click("chat")]);
        if (backlogs.length === 2) interrupt.abort(130);
      },
      err() {},
      interactive: false,
      signal: interrupt.signal,
    };
    expect(await runCommand(deliveries, ["lag", "--watch", "--json", "--channel", "chat"], terminal)).toBe(130);
    expect(backlogs).toEqual([1, 2]);
  });
});
