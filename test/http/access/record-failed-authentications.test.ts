// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { Recorded } from "../../../events/event-types-and-codec.ts";
import { recordFailures } from "../../../src/http/access/record-failed-authentications.ts";
import { createFailureLimit } from "../../../src/http/access/failed-authentication-limit.ts";
import { createEventLog, type EventLog } from "../../../src/log/event-log.ts";
import { openCommands } from "../../harness/in-process/commands.ts";
import { toLogContext } from "../../harness/in-process/temporary-log.ts";

const START = Date.parse("2026-03-01T08:00:00.000Z");

/**
 * Starts the recorder of failed authentications on a real, encrypted log. `pass` ends its current wait, after which it
 * records the failures.
 */
async function openRecord(replaced: Partial<EventLog> = {}) {
  const world = await openCommands();
  const logged: string[] = [];
  const at = (...said: unknown[]): void => void logged.push(JSON.stringify(said));
  const clock = { now: START };
  let passed = Promise.withResolvers<void>();
  const eventLog = { ...createEventLog(world.store, () => crypto.randomUUID()), ...replaced };
  const context = toLogContext(eventLog, {
    clock: () => clock.now,
    async sleep(_ms, signal) {
      signal.addEventListener("abort", () => passed.resolve());
      await passed.promise;
      passed = Promise.withResolvers();
    },
    logger: { debug: at, info: at, warn: at, error: at },
  });
  const record = recordFailures(
    context,
    createFailureLimit(() => clock.now),
  );
  const types = ["AuthenticationsFailed"];
  return {
    world,
    record,
    clock,
    logged,
    passWithoutRecord: () => passed.resolve(),
    async pass(): Promise<void> {
      const { position } = await world.store.head();
      passed.resolve();
      const until = new AbortController();
      for await (const _ of world.store.subscribe({ from: position + 1, types, signal: until.signal })) until.abort();
    },
    events: async () => (await Array.fromAsync(world.store.read({ types }))) as Recorded<"AuthenticationsFailed">[],
    async [Symbol.asyncDispose]() {
      await record[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

test("an address's failures within a minute are one event, with the count of 429s", async () => {
  await using opened = await openRecord();
  const { record, clock } = opened;
  for (let guess = 0; guess < 13; guess++) {
    await record.fail("192.0.2.1");
    clock.now += 1_000;
  }
  await opened.pass();
  expect((await opened.events()).map(({ data, meta }) => [data, meta.caller])).toEqual([
    [
      {
        address: "192.0.2.1",
        addresses: 1,
        failed: 10,
        turned_away: 3,
        since: "2026-03-01T08:00:00.000Z",
        until: "2026-03-01T08:00:12.000Z",
      },
      "reachlog",
    ],
  ]);
});

test("each minute of an attack is one event", async () => {
  await using opened = await openRecord();
  for (let minute = 0; minute < 3; minute++) {
    await opened.record.fail("192.0.2.1");
    await opened.pass();
    opened.clock.now += 60_000;
  }
  expect((await opened.events()).map(({ data }) => data.since)).toEqual([
    "2026-03-01T08:00:00.000Z",
    "2026-03-01T08:01:00.000Z",
    "2026-03-01T08:02:00.000Z",
  ]);
});

test("failures of 20,000 addresses in a minute are nine events, with the full sum", async () => {
  await using opened = await openRecord();
  for (let address = 0; address < 20_000; address++) await opened.record.fail(`10.0.${address >> 8}.${address & 255}`);
  await opened.pass();
  const events = await opened.events();
  expect(events).toHaveLength(9);
  expect(events.filter(({ data }) => data.address === undefined)).toHaveLength(1);
  expect(events.reduce((sum, { data }) => sum + data.failed, 0)).toBe(20_000);
});

test("the address is encrypted in the stored event", async () => {
  await using opened = await openRecord();
  await opened.record.fail("203.0.113.77");
  await opened.pass();
  const stored = await Array.fromAsync(opened.world.store.readStored({ types: ["AuthenticationsFailed"] }));
  expect(JSON.stringify(stored)).not.toContain("203.0.113.77");
  expect((await opened.events())[0]?.data.address).toBe("203.0.113.77");
});

test("pending failures are recorded when the service stops", async () => {
  await using opened = await openRecord();
  await opened.record.fail("192.0.2.1");
  await opened.record[Symbol.asyncDispose]();
  expect(await opened.events()).toHaveLength(1);
});

test("a stop waits for the append in progress, and records later failures", async () => {
  const appends: { readonly count: number; readonly end: () => void }[] = [];
  const begun = Promise.withResolvers<void>();
  await using opened = await openRecord({
    append(_stream, newEvents) {
      const { promise, resolve } = Promise.withResolvers<
        { readonly repeated: boolean } & Awaited<ReturnType<EventLog["append"]>>
      >();
      appends.push({
        count: newEvents.length,
        end: () => resolve({ first: 1, last: 1, version: 1, repeated: false, ids: [] }),
      });
      begun.resolve();
      return promise;
    },
  });
  await opened.record.fail("192.0.2.1");
  opened.passWithoutRecord();
  await begun.promise;
  await opened.record.fail("192.0.2.2");
  let isStopped = false;
  const stopped = Promise.resolve(opened.record[Symbol.asyncDispose]()).then(() => (isStopped = true));
  while (appends.length < 2) await new Promise(setImmediate);
  appends[1]?.end();
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  expect(isStopped).toBe(false);
  appends[0]?.end();
  await stopped;
  expect(appends.map(({ count }) => count)).toEqual([1, 1]);
});

test("a failed append fails no caller, and is logged without addresses", async () => {
  await using opened = await openRecord({ append: () => Promise.reject(new Error("disk full")) });
  await opened.record.fail("203.0.113.77");
  await opened.record[Symbol.asyncDispose]();
  expect(opened.logged).toEqual([expect.stringContaining('"failed":1'), expect.stringContaining("disk full")]);
  expect(opened.logged.join()).not.toContain("203.0.113.77");
});
