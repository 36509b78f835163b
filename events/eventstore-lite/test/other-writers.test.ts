import { DatabaseSync } from "node:sqlite";
import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { newEvent, newEvents, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { StoreBusy, VersionConflict } from "../src/errors.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

// Two stores open one file, as a command and the service that runs at the same time do.

test("two writers on one file keep one order and one chain", async () => {
  const file = newLogPath();
  await using service = await openSqliteStore({ file, owner: true });
  await using command = await openSqliteStore({ file });
  for (let round = 0; round < 20; round += 1) {
    await Promise.all([service.append("a", [newEvent()]), command.append("a", newEvents(2))]);
  }
  const events = await take(service.read());
  expect(events.map((event) => event.version)).toEqual(events.map((_, index) => index + 1));
  expect(await service.verify()).toMatchObject({ ok: true, checked: 60 });
});

test("a log is refused while another connection holds its write lock, and opens later", async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file });
    await store.append("a", [newEvent()]);
  }
  const other = new DatabaseSync(file);
  other.exec("BEGIN IMMEDIATE");
  expect(await refusalOf(openSqliteStore({ file }))).toBeInstanceOf(StoreBusy);
  other.exec("ROLLBACK");
  other.close();
  await using store = await openSqliteStore({ file });
  expect(await store.head()).toMatchObject({ position: 1 });
});

test("a version changed by another writer causes a conflict", async () => {
  const file = newLogPath();
  await using service = await openSqliteStore({ file });
  await using command = await openSqliteStore({ file });
  await service.append("a", [newEvent()]);
  await command.append("a", [newEvent()], { expected: 1 });
  expect(await refusalOf(service.append("a", [newEvent()], { expected: 1 }))).toMatchObject({ actual: 2 });
  expect(await refusalOf(service.append("a", [newEvent()], { expected: "none" }))).toBeInstanceOf(VersionConflict);
  expect(await service.append("a", [newEvent()], { expected: 2 })).toMatchObject({ first: 3, version: 3 });
});

test("a subscriber receives another writer's events once and in order", async () => {
  const file = newLogPath();
  await using service = await openSqliteStore({ file });
  await using command = await openSqliteStore({ file });
  const seen = take(service.subscribe({ from: 1, signal: new AbortController().signal }), 600);
  const service200 = appendEach(service, 200);
  const command200 = appendEach(command, 200);
  await Promise.all([service200, command200]);
  // The subscriber's own store appends no more, so only the appends of the other writer wake the subscriber.
  await command.append("a", newEvents(200));
  expect((await seen).map((event) => event.position)).toEqual(Array.from({ length: 600 }, (_, index) => index + 1));
  expect(await take(service.read())).toStrictEqual(await seen);
});

async function appendEach(store: Awaited<ReturnType<typeof openSqliteStore>>, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await store.append(`s${index % 3}`, [newEvent()]);
}
