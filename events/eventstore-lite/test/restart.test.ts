import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { newEvent, newEvents, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { LeaseLost, VersionConflict } from "../src/errors.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

test("a restarted store continues where it stopped", async () => {
  const file = newLogPath();
  const first = await openSqliteStore({ file });
  const { id } = first;
  await first.append("a", newEvents(3));
  await first.append("b", newEvents(1), { key: "k" });
  await first.snapshots.save("stats", { version: 1, position: 4, state: "s" });
  await first.leases.acquire("run", { holder: "old", ttlMs: 60_000 });
  const head = await first.head();
  await first[Symbol.asyncDispose]();

  await using second = await openSqliteStore({ file });
  expect(second.id).toBe(id);
  expect(await second.head()).toEqual(head);
  expect(await refusalOf(second.append("a", [newEvent()], { expected: 2 }))).toBeInstanceOf(VersionConflict);
  expect(await second.append("b", [newEvent()], { key: "k" })).toMatchObject({ first: 4, repeated: true });
  expect(await second.append("a", [newEvent()], { expected: 3 })).toMatchObject({ first: 5, version: 4 });
  expect(await second.snapshots.load("stats")).toEqual({ version: 1, position: 4, state: "s" });

  expect(await second.leases.acquire("run", { holder: "new", ttlMs: 1 })).toBeUndefined();
  await second.leases.acquire("run", { holder: "new", ttlMs: 60_000, steal: true });
  const fenced = second.append("a", [newEvent()], { fence: { lease: "run", token: 1 } });
  expect(await refusalOf(fenced)).toBeInstanceOf(LeaseLost);
  expect(await second.verify()).toMatchObject({ ok: true });
});

test("a clock set back between two starts does not set the log's time back", async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file, clock: () => 9_000 });
    await store.append("a", [newEvent()]);
  }
  await using store = await openSqliteStore({ file, clock: () => 5_000 });
  await store.append("a", [newEvent()]);
  const times = (await take(store.read())).map((event) => Date.parse(event.time));
  expect(times).toEqual([9_000, 9_000]);
});
