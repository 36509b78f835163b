// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type ClickChannel, type Lane } from "../../events/channel-and-lane-names.ts";
import { LETTERS_MAX } from "../../projections/dead-letters.ts";
import { deliveries, findChannel, isSettled, pendingOf, type Deliveries } from "../../projections/deliveries.ts";
import { fold } from "../../projections/projection.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";
import { HISTORY_CHANNELS } from "./generate-delivery-history.ts";
import { histories } from "./generate-history.ts";
import { testLog, type TestLog } from "../harness/in-process/number-and-fold-events.ts";
import { countCases } from "../harness/case-count.ts";

const LINK = { event: "click", domain: "go.example", short_code: "a", original_url: "https://example.com", bot: false };

function click(log: TestLog, channels: ClickChannel[] = ["chat"]): number {
  return log.add("LinkClicked", { ...LINK, channels });
}

function message(log: TestLog): number {
  return log.add("NotificationRequested", { message: "m", service: "s", level: "info" });
}

interface Of {
  readonly lane?: Lane;
  readonly lowWatermark?: number;
}

function dispatch(source: number, { lane = "clicks", lowWatermark = 0 }: Of) {
  return { channel: "chat", lane, low_watermark: lowWatermark, source } as const;
}

function record(log: TestLog, { type, data }: NewEvent): number {
  return log.add(type, data);
}

function delivered(log: TestLog, source: number, of: Of = {}): number {
  return record(log, outcomeOf("DispatchSucceeded", { ...dispatch(source, of), status: 200, latency_ms: 5 }));
}

function failed(log: TestLog, source: number, of: Of = {}): number {
  const retry_at = "2026-11-20T11:00:00.000Z";
  return record(log, outcomeOf("DispatchFailed", { ...dispatch(source, of), detail: "503", retry_at }));
}

function gaveUp(log: TestLog, source: number): number {
  return record(log, outcomeOf("DispatchAbandoned", { ...dispatch(source, {}), detail: "", refused: true }));
}

function given(log: TestLog): Deliveries {
  return fold(deliveries, deliveries.initial(), log.events);
}

describe("requested dispatches", () => {
  test("a click requests a dispatch to exactly the channels it names", () => {
    const log = testLog();
    click(log, ["ads", "messaging"]);
    const { ads, chat, messaging } = given(log);
    expect([pendingOf(ads), pendingOf(chat), pendingOf(messaging)]).toEqual([1, 0, 1]);
  });

  test("a notification requests chat and a message messaging, both in the direct lane", () => {
    const log = testLog();
    message(log);
    log.add("MessageRequested", { text: "t" });
    const { ads, chat, messaging } = given(log);
    expect([ads, chat, messaging].map(({ lanes }) => [lanes.direct.pending, lanes.clicks.pending])).toEqual([
      [0, 0],
      [1, 0],
      [1, 0],
    ]);
  });
});

describe("a settled dispatch", () => {
  test("is no longer pending and counts by its outcome", () => {
    const log = testLog();
    const [a, b, c, d] = [click(log), click(log), click(log), click(log)];
    delivered(log, a);
    record(log, outcomeOf("DispatchSkipped", { ...dispatch(b, {}), reason: "too_old" }));
    record(log, outcomeOf("DispatchInDoubt", { ...dispatch(c, {}), detail: "" }));
    expect(pendingOf(given(log).chat)).toBe(1);
    gaveUp(log, d);
    const { chat } = given(log);
    expect(chat).toMatchObject({ dispatched: 1, skipped: 1, in_doubt: 1, dead: 1 });
    expect(pendingOf(chat)).toBe(0);
  });

  test("is stored individually only until the lane's low watermark passes it", () => {
    const log = testLog();
    const [a, b, c, d, e] = [click(log), click(log), click(log), click(log), click(log)];
    const kept = () => [...given(log).chat.lanes.clicks.above.keys()];
    for (const source of [c, b, e]) delivered(log, source, { lowWatermark: a });
    expect(kept()).toEqual([c, b, e]);
    delivered(log, a, { lowWatermark: d });
    expect(kept()).toEqual([e]);
    delivered(log, d, { lowWatermark: e + 1 });
    expect(kept()).toEqual([]);
    const [f, g] = [click(log), click(log)];
    click(log);
    delivered(log, g, { lowWatermark: f });
    expect(kept()).toEqual([g]);
    delivered(log, f, { lowWatermark: g + 1 });
    expect(kept()).toEqual([]);
  });

  test.each(["same", "other"])("counts once even if the %s outcome is recorded afterwards", (kind) => {
    const log = testLog();
    const source = click(log);
    click(log);
    delivered(log, source);
    if (kind === "same") delivered(log, source);
    else gaveUp(log, source);
    const { chat } = given(log);
    expect(chat).toMatchObject({ dispatched: 1, dead: 0 });
    expect(pendingOf(chat)).toBe(1);
  });

  test("does not become pending again by a late failure", () => {
    const log = testLog();
    const source = click(log);
    delivered(log, source);
    failed(log, source);
    const { clicks } = given(log).chat.lanes;
    expect(isSettled(clicks, source)).toBe(true);
    expect(clicks.retries.size).toBe(0);
  });

  test("is distinguished from pending ones when settled out of order", () => {
    const log = testLog();
    const [a, b, c] = [click(log), click(log), click(log)];
    delivered(log, b, { lowWatermark: a });
    const { clicks } = given(log).chat.lanes;
    expect([a, b, c].map((source) => isSettled(clicks, source))).toEqual([false, true, false]);
  });

  test("raises the low watermark from which a restart reads", () => {
    const log = testLog();
    const [a, b] = [click(log), click(log)];
    delivered(log, a, { lowWatermark: b });
    expect(given(log).chat.lanes.clicks.low_watermark).toBe(b);
    const last = delivered(log, b, { lowWatermark: a });
    // No dispatch is pending any more, so the low watermark moves beyond the event with the last outcome.
    expect(given(log).chat.lanes.clicks.low_watermark).toBe(last + 1);
  });

  test("does not affect the other lane", () => {
    const log = testLog();
    const [first, direct] = [click(log), message(log)];
    delivered(log, direct, { lane: "direct" });
    const { lanes } = given(log).chat;
    expect(isSettled(lanes.direct, direct)).toBe(true);
    expect(isSettled(lanes.clicks, first)).toBe(false);
  });
});

describe("a dispatch that waits for its retry", () => {
  test("is pending, with its number of attempts and its retry time", () => {
    const log = testLog();
    const source = click(log);
    failed(log, source);
    const { chat } = given(log);
    expect(pendingOf(chat)).toBe(1);
    expect(chat.lanes.clicks.retries.get(source)).toEqual({ attempt: 1, retry_at: "2026-11-20T11:00:00.000Z" });
  });

  test("stays pending although the low watermark passes it, until it is settled", () => {
    const log = testLog();
    const [a, b, c] = [click(log), click(log), click(log)];
    failed(log, a, { lowWatermark: b });
    expect(given(log).chat.lanes.clicks.low_watermark).toBe(b);
    delivered(log, b, { lowWatermark: c });
    const waiting = given(log).chat.lanes.clicks;
    expect(waiting.low_watermark).toBe(c);
    expect([a, b, c].map((source) => isSettled(waiting, source))).toEqual([false, true, false]);
    delivered(log, a, { lowWatermark: c });
    const { clicks } = given(log).chat.lanes;
    expect(isSettled(clicks, a)).toBe(true);
    expect(clicks).toMatchObject({ pending: 1, retries: new Map() });
  });
});

describe("a dead letter", () => {
  test("becomes pending in the direct lane when it is retried", () => {
    const log = testLog();
    const source = click(log);
    gaveUp(log, source);
    expect(given(log).chat).toMatchObject({ dead: 1 });
    const retry = log.add("DispatchRetryRequested", { event_id: "e", source, channel: "chat" });
    expect(given(log).chat).toMatchObject({ dead: 0 });
    expect(pendingOf(given(log).chat)).toBe(1);
    delivered(log, retry, { lane: "direct" });
    expect(given(log).chat).toMatchObject({ dead: 0, dispatched: 1 });
    expect(pendingOf(given(log).chat)).toBe(0);
  });
});

describe("the list of dead letters", () => {
  const listed = (log: TestLog) => [...given(log).chat.letters.dead];

  test("holds abandoned dispatches without a later decision, by their first event", () => {
    const log = testLog();
    const [a, b, c] = [click(log), click(log), click(log)];
    const first = gaveUp(log, a);
    const second = gaveUp(log, b);
    const third = gaveUp(log, c);
    log.add("DispatchDiscarded", { event_id: "e", source: b, channel: "chat", why: "over" });
    const retry = log.add("DispatchRetryRequested", { event_id: "e", source: a, channel: "chat" });
    expect(listed(log)).toMatchObject([[c, { position: third, requested_at: c }]]);
    // A second process records the same end of both dispatches. The operator's later decisions about them still count.
    for (const source of [a, b]) gaveUp(log, source);
    expect(listed(log)).toHaveLength(1);
    const again = record(
      log,
      outcomeOf("DispatchAbandoned", { ...dispatch(retry, { lane: "direct" }), detail: "", refused: true }),
    );
    expect(listed(log)[1]).toMatchObject([a, { position: again, requested_at: retry }]);
    expect(given(log).chat.letters.taken_up.size).toBe(0);
    expect([first, second]).not.toContain(again);
  });

  test("holds only the newest if there are too many", () => {
    const log = testLog();
    const sources = Array.from({ length: LETTERS_MAX + 2 }, () => click(log));
    for (const source of sources) gaveUp(log, source);
    expect(listed(log).map(([source]) => source)).toEqual(sources.slice(2));
    expect(given(log).chat.dead).toBe(LETTERS_MAX + 2);
  });
});

test("in any history, each dispatch is settled or pending and counted by its outcome", () => {
  fc.assert(
    fc.property(histories(), ({ events, requested }) => {
      const state = fold(deliveries, deliveries.initial(), events);
      for (const { channel, lane, position, end } of requested) {
        expect(isSettled(findChannel(state, channel).lanes[lane], position)).toBe(end !== undefined);
      }
      for (const channel of HISTORY_CHANNELS) {
        const found = findChannel(state, channel);
        const mine = requested.filter((one) => one.channel === channel);
        const ended = (end: string | undefined) => mine.filter((one) => one.end === end).length;
        expect(pendingOf(found)).toBe(ended(undefined));
        for (const { above, low_watermark } of Object.values(found.lanes)) {
          expect([...above.keys()].filter((source) => source < low_watermark)).toEqual([]);
        }
        expect(found.letters.dead.size).toBe(found.dead);
        expect(found.letters.in_doubt.size).toBe(found.in_doubt);
        expect(found.letters.taken_up.size).toBeLessThanOrEqual(found.lanes.direct.pending);
        expect(found).toMatchObject({
          dispatched: ended("dispatched"),
          skipped: ended("skipped"),
          in_doubt: ended("in_doubt"),
        });
      }
    }),
    { numRuns: countCases(1_000) },
  );
});

describe("the size of the projection", () => {
  const CLICKS = 10_000;

  function sizeOf(state: Deliveries): number {
    const { above, retries } = state.chat.lanes.clicks;
    return above.size + retries.size;
  }

  test("stays bounded while 10,000 clicks are requested and settled in order", () => {
    const log = testLog();
    let state = deliveries.initial();
    let sizeMax = 0;
    const sources = Array.from({ length: CLICKS }, () => click(log));
    for (const [index, position] of sources.entries()) {
      delivered(log, position, { lowWatermark: sources[index + 1] ?? position });
    }
    for (const event of log.events) {
      state = deliveries.evolve(state, event);
      sizeMax = Math.max(sizeMax, sizeOf(state));
    }
    expect(state.chat.dispatched).toBe(CLICKS);
    expect(sizeMax).toBeLessThanOrEqual(1);
  });

  test("stays bounded while 10,000 clicks are settled and an earlier one waits for retry", () => {
    const log = testLog();
    const slow = click(log);
    failed(log, slow, { lowWatermark: slow + 1 });
    for (let at = 0; at < CLICKS; at++) {
      const position = click(log);
      delivered(log, position, { lowWatermark: position + 1 });
    }
    const state = given(log);
    expect(sizeOf(state)).toBe(1);
    expect(isSettled(state.chat.lanes.clicks, slow)).toBe(false);
    expect(pendingOf(state.chat)).toBe(1);
  });
});
