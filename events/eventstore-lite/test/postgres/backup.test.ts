import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { newEvent, newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { TargetTaken } from "../../src/errors.ts";
import { temporaryLogs } from "../temporary-logs.ts";
import { newDatabase } from "../../src/testing/postgres-server.ts";

const newLogPath = temporaryLogs();

test("a backup is an SQLite file with the log's id, events, keys and snapshots", async () => {
  await using store = await openPostgresStore({ url: await newDatabase() });
  const first = await store.append("a", [newEvent("T", { text: "é\n\u2028\ud800" })], { key: "k", digest: "d" });
  await store.append("b", newEvents(2_000));
  await store.snapshots.save("stats", { version: 1, position: 2, state: "ä" });
  const cursor = store.cursor(3);
  const file = newLogPath();
  const { head } = await store.backup(file);
  expect(head).toEqual(await store.head());
  const later = await store.append("a", newEvents(1));

  await using copy = await openSqliteStore({ file });
  expect([copy.id, copy.begunAs]).toEqual([store.id, "backup"]);
  expect(await take(copy.readStored())).toStrictEqual(await take(store.readStored({ to: 2_001 })));
  expect(await copy.append("a", [newEvent()], { key: "k", digest: "d" })).toEqual({ ...first, repeated: true });
  expect(await copy.snapshots.load("stats")).toEqual({ version: 1, position: 2, state: "ä" });
  expect(await copy.after(cursor)).toBe(4);
  expect(await refusalOf(copy.after(store.cursor(later.last)))).toMatchObject({ reason: "epoch-ended" });
  expect(await refusalOf(store.backup(file))).toBeInstanceOf(TargetTaken);
});
