// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newDatabase } from "eventstore-lite/testing";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import { isoTime, makeId, type Timer } from "../../src/platform/clock-ids-and-timers.ts";
import { toHttpResponse } from "../../src/http/server/http-response.ts";
import type { Endpoint } from "../../src/http/server/endpoint.ts";
import { createIdempotency } from "../../src/http/server/idempotency.ts";
import { Problem } from "../../src/http/server/problem.ts";
import { serverClock } from "../../src/log/log-time-and-clock-skew.ts";
import { createEventLog, type NewEvent } from "../../src/log/event-log.ts";
import { toDispatch } from "../../src/delivery/attempt-dispatches.ts";
import { startRetention, applyErasures } from "../../src/privacy/delete-erased-and-expired-keys.ts";
import { createVisitorSketch } from "../../src/privacy/hash-visitor-for-counting.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { secret } from "../../src/platform/secret.ts";
import { filePlace, locateLog } from "../../src/privacy/locate-log.ts";
import { openLogAt } from "../../src/privacy/open-log.ts";
import { clickOf, PERSON } from "../harness/in-process/make-recipient-and-click-events.ts";
import { toLogContext } from "../harness/in-process/temporary-log.ts";

const DAY_MS = 86_400_000;
const START = Date.parse("2026-11-01T12:00:00.000Z");
const CLICK = clickOf({ ip: "203.0.113.7", channels: ["ads"] });
const MESSAGE: NewEvent = { type: "MessageRequested", data: { text: "call Ann" } };

/** A log whose clock and timer the test controls. */
async function openWorld(days: number | undefined) {
  const stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "reachlog-retention-"));
  stack.defer(() => rmSync(directory, { recursive: true }));
  const world = { now: START, skewMs: 0 };
  const timers: (() => void)[] = [];
  const timer: Timer = (run) => {
    timers.push(run);
    return () => {};
  };
  const place = filePlace(logFiles(join(directory, "log.sqlite")), secret("01".repeat(32)));
  const open = async () => stack.use(await openLogAt(place, { clock: () => world.now }));
  const log = await open();
  let isFull = false;
  const recorded = createEventLog(log, () => Bun.randomUUIDv7());
  const append: typeof recorded.append = (...given) =>
    isFull ? Promise.reject(new Error("the log is full")) : recorded.append(...given);
  const eventLog = { ...recorded, append };
  const logClock = { ...log.logClock, now: () => world.now, skewMs: () => world.skewMs };
  const retained = { ...toLogContext(eventLog), keyring: log.keyring, logClock };
  const shown = async (): Promise<(string | true)[]> =>
    (await Array.fromAsync(log.read())).map(({ type, meta }) => `${type}${meta.erased === true ? " erased" : ""}`);
  return {
    log,
    /** Opens the same log as another process does. `start` starts the deletion of expired data in that process. */
    async beside() {
      const other = await open();
      const ofOther = { ...retained, eventLog: createEventLog(other, makeId), keyring: other.keyring };
      return { log: other, start: async () => stack.use(await startRetention(ofOther, days, timer)) };
    },
    eventLog,
    shown,
    start: async () => stack.use(await startRetention(retained, days, timer)),
    later: (ms: number) => void (world.now += ms),
    /** Sets how far the machine's clock is ahead of the log's, in ms. */
    skew: (ms: number) => void (world.skewMs = ms),
    now: () => world.now,
    /** Makes all later appends of this process fail. */
    refuseAppends: () => void (isFull = true),
    /** Waits for an event of this type, and returns all events. */
    async untilTold(wanted: string) {
      for await (const { type } of log.subscribe({ from: 1, signal: AbortSignal.timeout(10_000) })) {
        if (type === wanted) break;
      }
      return shown();
    },
    /** Fires the newest timer of the retention; the log shows its effect with the next append. */
    fire: () => timers.at(-1)?.(),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test("clicks and messages expire with their day; recipients and the chain stay", async () => {
  await using world = await openWorld(2);
  await world.start();
  await world.eventLog.append("a", [CLICK, MESSAGE, PERSON], {});
  world.later(2 * DAY_MS);
  await world.eventLog.append("a", [CLICK], {});
  await world.start();
  expect(await world.shown()).toEqual(["LinkClicked", "MessageRequested", "RecipientAdded", "LinkClicked"]);

  world.later(DAY_MS);
  await world.start();
  const erased = ["LinkClicked erased", "MessageRequested erased", "RecipientAdded", "LinkClicked"];
  expect(await world.shown()).toEqual([...erased, "PersonalDataExpired"]);
  const [last] = await Array.fromAsync(world.log.read({ backwards: true, limit: 1 }));
  expect(last?.data).toEqual({ before: "2026-11-02", days: 1 });
  // Another start on the same day has nothing to delete.
  await world.start();
  expect((await world.shown()).length).toBe(5);
  expect(await world.log.verify()).toMatchObject({ ok: true });
});

test("nothing expires while the machine's clock differs too much from the log's", async () => {
  await using world = await openWorld(1);
  await world.eventLog.append("a", [CLICK], {});
  world.later(2 * DAY_MS);
  world.skew(-2 * DAY_MS);
  await world.start();
  world.fire();
  await world.eventLog.append("a", [PERSON], {});
  expect(await world.shown()).toEqual(["LinkClicked", "RecipientAdded"]);
  world.skew(1_000);
  await world.start();
  expect(await world.shown()).toEqual(["LinkClicked erased", "RecipientAdded", "PersonalDataExpired"]);
});

test("expiry uses the server's days, even if the instance is days ahead", async () => {
  const stack = new AsyncDisposableStack();
  await using _closed = stack;
  const database = { url: secret(await newDatabase()), shown: "postgres://localhost/test" };
  const config = { log: { kind: "postgres", ...database, keys: database }, key: secret("01".repeat(32)) };
  const log = stack.use(await openLogAt(locateLog(config as Parameters<typeof locateLog>[0])));
  const eventLog = createEventLog(log, makeId);
  const logClock = serverClock({ wallClock: () => Date.now() + 3 * DAY_MS });
  await logClock.look(log);
  await eventLog.append("a", [CLICK], {});
  // A large clock skew alone would also keep retention from deleting data. So this clock reports no skew, and the test
  // shows that retention uses the server's day.
  const retained = { ...toLogContext(eventLog), keyring: log.keyring, logClock: { ...logClock, skewMs: () => 0 } };
  stack.use(await startRetention(retained, 1, () => () => {}));
  const shown = await Array.fromAsync(log.read());
  expect(shown.map(({ type, meta }) => [type, meta.erased === true])).toEqual([["LinkClicked", false]]);
});

test("a running service expires data on its timer", async () => {
  await using world = await openWorld(1);
  await world.start();
  await world.eventLog.append("a", [CLICK], {});
  world.later(2 * DAY_MS);
  const told = new AbortController();
  const expired = (async () => {
    for await (const { type } of world.log.subscribe({ from: 2, signal: told.signal })) return type;
    return undefined;
  })();
  world.fire();
  expect(await expired).toBe("PersonalDataExpired");
});

test("two processes that expire the same day at once have the effect of one", async () => {
  await using world = await openWorld(1);
  await world.eventLog.append("a", [CLICK, MESSAGE, PERSON], {});
  world.later(2 * DAY_MS);
  const other = await world.beside();
  await world.eventLog.append("a", [CLICK], {});
  await createEventLog(other.log, () => Bun.randomUUIDv7()).append("a", [CLICK], {});
  await Promise.all([world.start(), other.start()]);
  const erased = ["LinkClicked erased", "MessageRequested erased", "RecipientAdded", "LinkClicked", "LinkClicked"];
  const shown = await world.shown();
  expect(shown.slice(0, 5)).toEqual(erased);
  expect(new Set(shown.slice(5))).toEqual(new Set(["PersonalDataExpired"]));
  for (const log of [world.log, other.log]) {
    const read = await Array.fromAsync(log.read());
    expect(read.map(({ meta }) => meta.erased === true).slice(0, 5)).toEqual([true, true, false, false, false]);
    const expired = read.slice(5).map(({ data }) => (data as { before: string }).before);
    expect(new Set(expired)).toEqual(new Set(["2026-11-02"]));
  }
  expect(await world.log.verify()).toMatchObject({ ok: true });
});

test("without RETENTION_DAYS only stored responses expire, without an event", async () => {
  await using world = await openWorld(undefined);
  const answer: NewEvent = { type: "RequestAnswered", data: { digest: "d", status: 200, headers: {}, body: "{}" } };
  await world.eventLog.append("a", [CLICK, MESSAGE, answer], {});
  world.later(2 * DAY_MS);
  await world.start();
  expect(await world.shown()).toEqual(["LinkClicked", "MessageRequested", "RequestAnswered"]);
  world.later(DAY_MS);
  await world.start();
  expect(await world.shown()).toEqual(["LinkClicked", "MessageRequested", "RequestAnswered erased"]);
});

test("data keeps its keys if the log does not take the event that they have expired", async () => {
  await using world = await openWorld(2);
  await world.eventLog.append("a", [CLICK], {});
  world.later(3 * DAY_MS);
  world.refuseAppends();
  expect(await world.start().catch((fault: unknown) => fault)).toEqual(new Error("the log is full"));
  expect(await world.shown()).toEqual(["LinkClicked"]);
});

test("an idempotency key with an expired response is refused, and nothing is done twice", async () => {
  await using world = await openWorld(undefined);
  const request = new Request("http://localhost/x", { headers: { "idempotency-key": "k-1" } });
  const endpoint = { path: "/x", requestHeaders: ["Idempotency-Key"] } as unknown as Endpoint;
  const call = { request, endpoint, metadata: { caller: "ann" }, readAddress: () => "127.0.0.1", headers: {} };
  let done = 0;
  const perform = async () => ({ n: ++done });
  const once = () =>
    createIdempotency(toLogContext(world.eventLog), new AbortController().signal).once(call, { a: 1 }, perform);
  expect(toHttpResponse(await once()).body).toBe('{"n":1}');
  world.later(2 * DAY_MS);
  await world.start();
  expect(toHttpResponse(await once()).body).toBe('{"n":1}');
  world.later(DAY_MS);
  await world.start();
  const refused = await once().catch((fault: unknown) => fault);
  expect([refused instanceof Problem && refused.slug, done]).toEqual(["idempotency-key-expired", 1]);
});

test("an erased click is not dispatched, also when retried by hand", async () => {
  await using world = await openWorld(1);
  const { first, ids } = await world.eventLog.append("a", [CLICK], {});
  const retry = { event_id: ids[0] ?? "", source: first, channel: "ads" } as const;
  await world.eventLog.append("a", [{ type: "DispatchRetryRequested", data: retry }], {});
  const dispatches = async () =>
    Promise.all(
      (await Array.fromAsync(world.log.read({ to: 2 }))).map(async (event) => toDispatch(world.log, event, "ads")),
    );
  expect(await dispatches()).toEqual([
    expect.objectContaining({ kind: "click" }),
    expect.objectContaining({ kind: "click" }),
  ]);
  world.later(3 * DAY_MS);
  await world.start();
  expect(await dispatches()).toEqual([undefined, undefined]);
});

test("a conversion is not dispatched once its click is erased", async () => {
  await using world = await openWorld(1);
  const { first: click } = await world.eventLog.append("a", [CLICK], {});
  world.later(3 * DAY_MS);
  const data: DataOf<"ConversionRecorded"> = {
    name: "Purchase",
    occurred_at: isoTime(world.now()),
    click,
    channels: ["ads"],
  };
  const { first } = await world.eventLog.append("a", [{ type: "ConversionRecorded", data }], {});
  const dispatch = async () => {
    const [conversion] = await Array.fromAsync(world.log.read({ from: first, limit: 1 }));
    return toDispatch(world.log, conversion!, "ads");
  };
  expect(await dispatch()).toMatchObject({ kind: "conversion", click: { kind: "click" } });
  await world.start();
  expect(await dispatch()).toBeUndefined();
});

test("a clock that is years ahead deletes nothing at first, and is accepted in the end", async () => {
  await using world = await openWorld(30);
  await world.start();
  await world.eventLog.append("a", [CLICK], {});
  world.later(3_650 * DAY_MS);
  // Data was encrypted while the clock was wrong. Nevertheless, a restart must not delete anything, nor must a second
  // one.
  for (let starts = 0; starts < 2; starts++) {
    await world.start();
    await world.eventLog.append("a", [CLICK], {});
  }
  expect(await world.shown()).toEqual(["LinkClicked", "LinkClicked", "LinkClicked"]);
  world.later(-3_650 * DAY_MS);
  await world.start();
  expect(await world.shown()).toEqual(["LinkClicked", "LinkClicked", "LinkClicked"]);

  world.later(7_300 * DAY_MS);
  await world.start();
  world.later(DAY_MS / 2);
  world.fire();
  expect((await world.untilTold("PersonalDataExpired")).at(0)).toBe("LinkClicked erased");
});

test("a corrected clock is accepted at once", async () => {
  await using world = await openWorld(1);
  await world.eventLog.append("a", [CLICK], {});
  await world.start();
  world.later(3_650 * DAY_MS);
  world.fire();
  world.later(-3_648 * DAY_MS);
  world.fire();
  expect(await world.untilTold("PersonalDataExpired")).toEqual(["LinkClicked erased", "PersonalDataExpired"]);
});

test("an expiry recorded by a wrong clock deletes no later days", async () => {
  await using world = await openWorld(30);
  const ahead: NewEvent = { type: "PersonalDataExpired", data: { before: "2036-10-01", days: 25 } };
  await world.eventLog.append("log", [ahead], {});
  await world.eventLog.append("a", [CLICK], {});
  await applyErasures(world.log, world.log.keyring, world.now());
  expect(await world.shown()).toEqual(["PersonalDataExpired", "LinkClicked"]);
  // The clock is right again from now on.
  await world.start();
  await world.start();
  expect(await world.shown()).toEqual(["PersonalDataExpired", "LinkClicked", "PersonalDataExpired"]);
  world.later(5 * DAY_MS);
  await applyErasures(world.log, world.log.keyring, world.now());
  expect((await world.shown())[1]).toBe("LinkClicked");
});

test("an erasure that is completed after a crash makes earlier stored states unreadable", async () => {
  await using world = await openWorld(undefined);
  const { keyring } = world.log;
  await world.eventLog.append("a", [PERSON], {});
  const state = await keyring.encryptState("contacts", "{}");
  // The process died after it recorded the erasure, before it deleted the keys.
  const keys = [...keyring.refsOf({ username: "ann" })];
  await world.eventLog.append("log", [{ type: "PersonForgotten", data: { hashes: [], keys } }], {});
  expect(await keyring.openState("contacts", state)).toBe("{}");
  await applyErasures(world.log, keyring, world.now());
  expect(await keyring.openState("contacts", state)).toBeUndefined();
});

test("visitor salts of earlier days are deleted without RETENTION_DAYS too, and today's stays", async () => {
  await using world = await openWorld(undefined);
  const { keys } = world.log.keyring;
  const place = createVisitorSketch(keys, world.now);
  const visitor = { ip: "203.0.113.7", userAgent: "Firefox" };
  const salts = async () => (await keys.refs("v")).map((ref) => ref.slice(1, 11));
  await place("go.example/a", visitor);
  await world.start();
  expect(await salts()).toEqual(["2026-11-01"]);
  world.later(DAY_MS);
  await place("go.example/a", visitor);
  expect((await salts()).toSorted()).toEqual(["2026-11-01", "2026-11-02"]);
  await world.start();
  expect(await salts()).toEqual(["2026-11-02"]);
});
