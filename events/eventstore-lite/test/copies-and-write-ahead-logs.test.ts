import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { StoreUnusable } from "eventstore-lite/testing";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newEvent, newEvents, refusalOf } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

/**
 * Makes a log of five events, a copy of it, and later appends in the write-ahead log that a crash leaves. Returns the
 * paths.
 */
async function crashed(): Promise<{ file: string; copy: string }> {
  const live = newLogPath();
  const file = newLogPath();
  const copy = newLogPath();
  await using store = await openSqliteStore({ file: live });
  await store.append("a", newEvents(5));
  await store.backup(copy);
  await store.append("a", newEvents(2));
  for (const suffix of ["", "-wal", "-shm"]) copyFileSync(live + suffix, file + suffix);
  return { file, copy };
}

test("a crashed log opens with the events of its write-ahead log", async () => {
  const { file } = await crashed();
  await using store = await openSqliteStore({ file });
  expect(await store.head()).toMatchObject({ position: 7 });
});

test("a copy over a log is refused while the log's former write-ahead log exists", async () => {
  const { file, copy } = await crashed();
  copyFileSync(copy, file);
  for (const owner of [true, false]) {
    const refused = await refusalOf(openSqliteStore({ file, owner }));
    expect(refused).toBeInstanceOf(StoreUnusable);
    expect((refused as Error).message).toContain(`${file}-wal is of the log that was there before`);
  }
  // The refusal changed no file, because the log's last events may still be wanted.
  expect(readFileSync(file).equals(readFileSync(copy))).toBe(true);
  expect(existsSync(`${file}-wal`)).toBe(true);

  for (const suffix of ["-wal", "-shm"]) renameSync(file + suffix, `${file}${suffix}.old`);
  await using store = await openSqliteStore({ file, owner: true });
  expect(await store.head()).toMatchObject({ position: 5 });
  expect(await store.verify()).toMatchObject({ ok: true, checked: 5 });
});

test("SQLite alone would add events of the former write-ahead log to the copy", async () => {
  const { file, copy } = await crashed();
  copyFileSync(copy, file);
  const raw = new DatabaseSync(file);
  expect(raw.prepare("SELECT count(*) AS events FROM events").get()).toEqual({ events: 7 });
  raw.close();
});

test("a restored log can be opened repeatedly, even after a crash", async () => {
  const { copy } = await crashed();
  const file = newLogPath();
  const again = newLogPath();
  copyFileSync(copy, file);
  {
    await using store = await openSqliteStore({ file });
    await store.append("a", [newEvent()]);
    for (const suffix of ["", "-wal"]) copyFileSync(file + suffix, again + suffix);
  }
  await using store = await openSqliteStore({ file: again });
  await using beside = await openSqliteStore({ file: again });
  expect(await beside.head()).toMatchObject({ position: 6 });
  expect(beside.epoch).toBe(store.epoch);
});

test.skipIf(process.platform !== "linux")(
  "opening a log keeps the locks of a store already open in the process",
  async () => {
    const file = newLogPath();
    await using store = await openSqliteStore({ file });
    await store.append("a", [newEvent()]);
    const held = locksOn(file);
    await using _beside = await openSqliteStore({ file });
    // The kernel's list may name one lock twice if it changes while it is read.
    expect(new Set(locksOn(file))).toEqual(new Set(held));
  },
);

/** Returns the locks on this file in the kernel's list (https://man7.org/linux/man-pages/man5/proc_locks.5.html). */
function locksOn(file: string): string[] {
  const { ino } = statSync(file);
  const lines = readFileSync("/proc/locks", "utf8").split("\n");
  return lines.filter((line) => line.includes(`:${ino} `)).map((line) => line.replace(/^\d+: /, ""));
}

test("a backup is refused where another database left its write-ahead log", async () => {
  const file = newLogPath();
  await using store = await openSqliteStore({ file });
  await store.append("a", [newEvent()]);
  const copy = newLogPath();
  writeFileSync(`${copy}-wal`, "left");
  expect(await refusalOf(store.backup(copy))).toMatchObject({ name: "TargetTaken" });
  expect(readdirSync(dirname(copy))).toEqual(["log.sqlite-wal"]);
  rmSync(`${copy}-wal`);
  expect(await store.backup(copy)).toMatchObject({ head: { position: 1 } });
});
