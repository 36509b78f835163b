import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { newEvent, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { pragma } from "../src/sqlite/connection-settings.ts";
import { createFormat1 } from "./format-1.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

test("a log of format 1 is migrated with all its contents", async () => {
  const file = newLogPath();
  createFormat1(file);
  let epoch: string;
  {
    await using store = await openSqliteStore({ file });
    ({ epoch } = store);
    expect(store.id).toBe("37296d90-7de9-49f5-b432-4bcfb35865ac");
    expect(await store.verify()).toMatchObject({ ok: true, checked: 3 });
    expect((await take(store.read())).map(({ id }) => id)).toEqual(["e1", "e2", "e3"]);
    expect(await store.snapshots.load("stats")).toEqual({ version: 1, position: 3, state: "s" });
    const repeat = await store.append("a", [newEvent()], { key: "k", digest: "whatever" });
    expect(repeat).toMatchObject({ first: 1, repeated: true });
    expect(await store.after(store.cursor(2))).toBe(3);
  }
  expect(formatOf(file)).toBe(5);
  await using again = await openSqliteStore({ file });
  expect(again.epoch).toBe(epoch);
});

test("kill -9 during a migration leaves format 1, which the next start migrates", async () => {
  const file = newLogPath();
  createFormat1(file);
  const program = fileURLToPath(new URL("./migrate-and-die.ts", import.meta.url));
  const child = Bun.spawn([process.execPath, program, file], { stdout: "pipe", stderr: "inherit" });
  await child.exited;
  expect([child.signalCode, await new Response(child.stdout).text()]).toEqual(["SIGKILL", "format 5\n"]);
  expect(formatOf(file)).toBe(1);
  await using store = await openSqliteStore({ file });
  expect(await store.verify()).toMatchObject({ ok: true, checked: 3 });
  expect(formatOf(file)).toBe(5);
});

test("a migration from format 2 records how each epoch began", async () => {
  const [original, copy] = [newLogPath(), newLogPath()];
  {
    await using store = await openSqliteStore({ file: original });
    await store.append("a", [newEvent()]);
    await store.backup(copy);
  }
  for (const file of [original, copy]) makeFormat2(file);
  await using first = await openSqliteStore({ file: original });
  await using second = await openSqliteStore({ file: copy });
  expect([first.begunAs, second.begunAs, formatOf(original)]).toEqual(["new", "backup", 5]);
});

test("events of a log of format 3 can be archived but not deleted", async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file });
    await store.append("a", [newEvent(), newEvent()]);
  }
  makeFormat3(file);
  await using store = await openSqliteStore({ file });
  expect(formatOf(file)).toBe(5);
  const remove = (position: number) => () => {
    const db = new DatabaseSync(file);
    try {
      db.exec(`DELETE FROM events WHERE position = ${position}`);
    } finally {
      db.close();
    }
  };
  expect(remove(1)).toThrow("events are append-only");
  await take(store.archive({ to: 1 }));
  expect(await store.verify()).toMatchObject({ ok: true, checked: 2 });
  expect(remove(2)).toThrow("events are append-only");
});

test("keys of a log of format 4 stay known and are archived with the next segment", async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file });
    await store.append("a", [newEvent()]);
    for (const key of ["two", "three"]) await store.append("a", [newEvent()], { key });
    await take(store.archive({ to: 1 }));
  }
  makeFormat4(file, "INSERT INTO idempotency_keys (key, first, last, version) VALUES ('one', 1, 1, 1)");
  await using store = await openSqliteStore({ file });
  expect(formatOf(file)).toBe(5);
  expect(await store.verify()).toMatchObject({ ok: true, checked: 3 });
  const repeats = () => Promise.all(["one", "two", "three"].map((key) => store.append("a", [newEvent()], { key })));
  expect(await repeats()).toMatchObject([1, 2, 3].map((first) => ({ first, repeated: true })));
  await take(store.archive({ to: 2 }));
  expect(wholeKeysOf(file)).toEqual(["three"]);
  expect(await repeats()).toMatchObject([1, 2, 3].map((first) => ({ first, repeated: true })));
  expect(await store.verify()).toMatchObject({ ok: true, checked: 3 });
});

/** Changes a log to format 2, in which epochs did not record how they began and idempotency keys had no digests. */
function makeFormat2(file: string): void {
  makeFormat3(file);
  const db = new DatabaseSync(file);
  db.exec(
    "ALTER TABLE epochs DROP COLUMN begun_as; ALTER TABLE idempotency_keys DROP COLUMN digest; PRAGMA user_version = 2",
  );
  db.close();
}

/** Changes a log to format 4, in which segments held no idempotency keys; `change` is more SQL to execute. */
function makeFormat4(file: string, change: string): void {
  const db = new DatabaseSync(file);
  db.exec(`DROP TRIGGER segments_follow_the_log; DROP TABLE archived_keys;
    ALTER TABLE segments DROP COLUMN keys_from; PRAGMA user_version = 4; ${change}`);
  db.close();
}

function wholeKeysOf(file: string): unknown[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return db
      .prepare("SELECT key FROM idempotency_keys")
      .all()
      .map(({ key }) => key);
  } finally {
    db.close();
  }
}

/** Changes a log to format 3, in which there were no segments. */
function makeFormat3(file: string): void {
  const db = new DatabaseSync(file);
  db.exec(`DROP TABLE segments; DROP TABLE archived_streams; DROP TABLE archived_keys; DROP TRIGGER events_are_never_deleted;
    CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
      BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
    PRAGMA user_version = 3`);
  db.close();
}

function formatOf(file: string): unknown {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return pragma(db, "user_version");
  } finally {
    db.close();
  }
}
