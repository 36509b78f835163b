import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { openPostgresStore, restorePostgresLog } from "eventstore-lite/postgres";
import { ImportRefused, TargetTaken } from "eventstore-lite/testing";
import { DatabaseSync } from "node:sqlite";
import { newEvent, newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { newDatabase } from "../../src/testing/postgres-server.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();

/**
 * Backs up a log with more events and idempotency keys than one query takes. Returns the backup's file, and the log's
 * id, head, events and a cursor at its end.
 */
async function copied() {
  const file = newLogPath();
  await using store = await openSqliteStore({ file: newLogPath() });
  await store.append("a", [newEvent("T", { text: "é\n\u2028\ud800\0'\"\\" }), newEvent("T", null)], { key: "k" });
  await Promise.all(newEvents(1_500).map((event, at) => store.append("b", [event], { key: `key ${at}` })));
  await store.backup(file);
  const { position, hash } = await store.head();
  return { file, id: store.id, cursor: store.cursor(position), position, hash, events: await take(store.readStored()) };
}

test("a copy of a log in a file continues in PostgreSQL in a new epoch", async () => {
  const url = await newDatabase();
  const { file, id, cursor, position, hash, events } = await copied();
  const progress: number[] = [];
  const onProgress = (done: number) => void progress.push(done);
  expect(await restorePostgresLog({ url, schema: "log", file, onProgress })).toMatchObject({ position, hash });
  expect(progress.at(-1)).toBe(position);
  await using store = await openPostgresStore({ url, schema: "log" });
  expect([store.id, store.begunAs, await store.after(cursor)]).toEqual([id, "backup", position + 1]);
  expect(store.epoch).toMatch(/^[0-9a-f-]{36}$/);
  expect(store.epoch).not.toBe(cursor.epoch);
  expect(await take(store.readStored())).toStrictEqual(events);
  expect(await store.verify()).toMatchObject({ ok: true, checked: position });
  expect(await store.append("b", [newEvent()], { key: "key 1499" })).toMatchObject({ repeated: true });
  expect(await store.append("a", [newEvent()], { expected: 2 })).toMatchObject({ first: position + 1 });
  const back = newLogPath();
  expect((await store.backup(back)).head).toMatchObject({ position: position + 1 });
  await using again = await openSqliteStore({ file: back });
  expect([again.id, await again.after(cursor)]).toEqual([id, position + 1]);
});

test("a restore refuses a target with events and a copy with an altered event", async () => {
  const url = await newDatabase();
  const { file } = await copied();
  {
    await using store = await openPostgresStore({ url, schema: "log" });
    await store.append("a", [newEvent()]);
  }
  expect(await refusalOf(restorePostgresLog({ url, schema: "log", file }))).toBeInstanceOf(TargetTaken);
  const db = new DatabaseSync(file);
  db.exec("DROP TRIGGER events_are_never_updated; UPDATE events SET data = '{}' WHERE position = 1200");
  db.close();
  expect(await refusalOf(restorePostgresLog({ url, schema: "other", file }))).toBeInstanceOf(ImportRefused);
  await using store = await openPostgresStore({ url, schema: "other" });
  expect(await store.head()).toMatchObject({ position: 0 });
});
