import { expect, test } from "bun:test";
import { type EventStore, openSqliteStore } from "eventstore-lite";
import { StoreUnavailable, StoreUnusable } from "eventstore-lite/testing";
import { existsSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newEvent, refusalOf } from "../src/testing/contract/make-events-and-collect-results.ts";
import { FILES_EVERY_MS, rememberDatabase } from "../src/detect-replaced-files.ts";
import { openReader, openWriter } from "../src/sqlite/connections.ts";
import { pragma } from "../src/sqlite/connection-settings.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

const ANY_SIZE = Number.MAX_SAFE_INTEGER;

test("a new log creates its directory, with files readable by their owner only", async () => {
  const file = join(dirname(newLogPath()), "new", "log.sqlite");
  await using store = await openSqliteStore({ file, owner: true });
  await store.append("a", [newEvent()]);
  for (const suffix of ["", "-wal", "-shm", ".lock", ".owner"]) {
    expect([suffix, statSync(file + suffix).mode & 0o777]).toEqual([suffix, 0o600]);
  }
});

/** Appends until a check of the files next to the database refuses an append. */
async function appendUntilRefused(store: EventStore): Promise<unknown> {
  for (;;) {
    const refusal = await refusalOf(store.append("a", [newEvent()]));
    if (refusal !== undefined) return refusal;
  }
}

test("a log with a removed or replaced file refuses appends until the file is back", async () => {
  const file = newLogPath();
  await using store = await openSqliteStore({ file });
  await store.append("a", [newEvent()]);
  renameSync(file, `${file}.away`);
  expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(StoreUnavailable);
  expect((await store.head()).position).toBe(1);
  renameSync(`${file}.away`, file);
  for (const suffix of ["", "-wal", "-shm"]) {
    renameSync(file + suffix, `${file}.away`);
    expect(await appendUntilRefused(store)).toBeInstanceOf(StoreUnavailable);
    expect(await refusalOf(store.confirm(await store.head()))).toBeInstanceOf(StoreUnavailable);
    writeFileSync(file + suffix, "another file");
    expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(StoreUnavailable);
    renameSync(`${file}.away`, file + suffix);
    await store.append("a", [newEvent()]);
    expect(await store.confirm(await store.head())).toBe("same");
  }
  expect(await store.verify()).toMatchObject({ ok: true });
});

test("the writer checks its database file every time and its other files at intervals", () => {
  const database = newLogPath();
  const other = `${database}-wal`;
  for (const path of [database, other]) writeFileSync(path, "");
  let now = 0;
  const look = rememberDatabase([database, other], () => now);
  look();
  renameSync(other, `${other}.away`);
  now = FILES_EVERY_MS - 1;
  look();
  renameSync(database, `${database}.away`);
  expect(look).toThrow(`${database} is no longer the file that was opened`);
  renameSync(`${database}.away`, database);
  now = FILES_EVERY_MS;
  for (let again = 0; again < 2; again += 1) expect(look).toThrow(`${other} is no longer the file that was opened`);
  renameSync(`${other}.away`, other);
  look();
});

test("closing leaves one file and no write-ahead log", async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file, owner: true });
    await store.append("a", [newEvent()]);
  }
  expect(["-wal", "-shm", ".owner"].filter((suffix) => existsSync(file + suffix))).toEqual([]);
});

test("both connections have the settings for fsynced commits and untrusted files", () => {
  const file = newLogPath();
  const { db } = openWriter(file, ANY_SIZE);
  const reader = openReader(file);
  const settings = {
    journal_mode: "wal",
    synchronous: 2,
    busy_timeout: 2_000,
    foreign_keys: 0,
    trusted_schema: 0,
    cell_size_check: 1,
    wal_autocheckpoint: 1_000,
    journal_size_limit: 67_108_864,
    page_size: 8_192,
    user_version: 5,
  };
  for (const [name, value] of Object.entries(settings)) expect([name, pragma(db, name)]).toEqual([name, value]);
  expect(pragma(reader, "trusted_schema")).toBe(0);
  expect(() => reader.exec("INSERT INTO types (name) VALUES ('x')")).toThrow("readonly");
  reader.close();
  db.close();
});

test("another application's database is refused and left unchanged", async () => {
  const file = newLogPath();
  const other = new DatabaseSync(file);
  other.exec("CREATE TABLE theirs (x)");
  other.close();
  expect(await refusalOf(openSqliteStore({ file }))).toBeInstanceOf(StoreUnusable);
  const reopened = new DatabaseSync(file);
  expect(pragma(reopened, "journal_mode")).toBe("delete");
  expect(pragma(reopened, "application_id")).toBe(0);
  reopened.close();
});

test("a log of a newer format is refused with its format", async () => {
  const file = newLogPath();
  await (await openSqliteStore({ file }))[Symbol.asyncDispose]();
  const raw = new DatabaseSync(file);
  raw.exec("PRAGMA user_version = 99");
  raw.close();
  expect(await refusalOf(openSqliteStore({ file }))).toMatchObject({ message: expect.stringContaining("format 99") });
});

test("a file that is no database is refused", async () => {
  const file = newLogPath();
  writeFileSync(file, "not a database, but long enough to be read as the header of one".repeat(10));
  expect(await refusalOf(openSqliteStore({ file }))).toBeInstanceOf(StoreUnusable);
});

test("opening a refused file does not keep the ownership", async () => {
  const file = newLogPath();
  writeFileSync(file, "x".repeat(1_000));
  for (const _attempt of [1, 2]) {
    expect(await refusalOf(openSqliteStore({ file, owner: true }))).toBeInstanceOf(StoreUnusable);
  }
});

test("concurrent openings of the same new file create one log", async () => {
  const file = newLogPath();
  const stores = await Promise.all(Array.from({ length: 6 }, () => openSqliteStore({ file })));
  await Promise.all(stores.map((store) => store.append("a", [newEvent()])));
  expect(new Set(stores.map((store) => store.id)).size).toBe(1);
  expect(await stores[0]!.verify()).toMatchObject({ ok: true, checked: 6 });
  for (const store of stores) await store[Symbol.asyncDispose]();
});
