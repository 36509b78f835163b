import { describe, expect, test } from "bun:test";
import { importSqliteLog, openSqliteStore, type NewEvent, type Recorded } from "eventstore-lite";
import { StoreOwned } from "eventstore-lite/testing";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { newEvent, newEvents, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

type StoredEvent = Recorded<NewEvent>;

async function* each(events: readonly StoredEvent[]): AsyncGenerator<StoredEvent, void, void> {
  yield* events;
}

/** Returns six stored events of a log with two streams and two different times. */
async function recorded(): Promise<StoredEvent[]> {
  let now = 1_000;
  await using store = await openSqliteStore({ file: newLogPath(), clock: () => now, writerThread: false });
  await store.append("a", [newEvent("T", { text: "é\n\u2028\ud800" }), newEvent("T", null)], { key: "k" });
  await store.append("b", [newEvent("U", [1e21, -0, "x"])]);
  now = 2_000;
  await store.append("a", newEvents(3));
  return await take(store.readStored());
}

/** Returns the files that an import left, except the lock file, which every owner of a log leaves. */
function leftIn(file: string): string[] {
  return readdirSync(dirname(file)).filter((name) => !name.includes(".lock"));
}

describe("an import", () => {
  test("gives the same positions, versions, times and hashes", async () => {
    const events = await recorded();
    const file = newLogPath();
    const head = await importSqliteLog({ file, events: each(events) });
    await using store = await openSqliteStore({ file, writerThread: false });
    expect(head).toEqual({ position: 6, hash: events[5]!.hash, time: "1970-01-01T00:00:02.000Z" });
    expect(await store.head()).toEqual(head);
    expect(await take(store.readStored())).toStrictEqual(events);
    expect(await take(store.read({ stream: "b" }))).toHaveLength(1);
    expect(await store.verify()).toMatchObject({ ok: true, checked: 6 });
    expect(leftIn(file).sort()).toEqual(["log.sqlite", "log.sqlite-shm", "log.sqlite-wal"]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("continues with the next position and version of the exported log", async () => {
    const file = newLogPath();
    await importSqliteLog({ file, events: each(await recorded()) });
    await using store = await openSqliteStore({ file, writerThread: false });
    expect(await store.append("a", [newEvent()], { expected: 5 })).toMatchObject({ first: 7, version: 6 });
    expect(await store.verify()).toMatchObject({ ok: true, checked: 7 });
  });

  test("has a new id and no idempotency keys or snapshots", async () => {
    const events = await recorded();
    const stores = [];
    for (const file of [newLogPath(), newLogPath()]) {
      await importSqliteLog({ file, events: each(events) });
      stores.push(await openSqliteStore({ file, writerThread: false }));
    }
    const [first, second] = stores;
    expect(first!.id).not.toBe(second!.id);
    expect(await first!.snapshots.load("stats")).toBeUndefined();
    expect(await first!.append("a", [newEvent()], { key: "k" })).toMatchObject({ first: 7, repeated: false });
    for (const store of stores) await store[Symbol.asyncDispose]();
  });

  test("without events gives an empty log", async () => {
    const file = newLogPath();
    expect(await importSqliteLog({ file, events: each([]) })).toMatchObject({ position: 0 });
    await using store = await openSqliteStore({ file, writerThread: false });
    expect(await store.append("a", [newEvent()])).toMatchObject({ first: 1 });
  });

  test("replaces a log without events", async () => {
    const file = newLogPath();
    const before = await openSqliteStore({ file, owner: true, writerThread: false });
    await before[Symbol.asyncDispose]();
    await importSqliteLog({ file, events: each(await recorded()) });
    await using store = await openSqliteStore({ file, writerThread: false });
    expect(await store.head()).toMatchObject({ position: 6 });
    expect(store.id).not.toBe(before.id);
  });
});

type Fault = readonly [position: number, reason: string, spoil: (events: StoredEvent[]) => unknown[]];

function changed(position: number, fields: Record<string, unknown>) {
  return (events: StoredEvent[]) =>
    events.map((event) => (event.position === position ? { ...event, ...fields } : event));
}

const faults: Record<string, Fault> = {
  "with a missing event": [3, "it is missing: the event here is of position 4", (events) => events.toSpliced(2, 1)],
  "with a missing beginning": [1, "it is missing", (events) => events.slice(1)],
  "with a repeated event": [4, "of position 3, which was before", (events) => events.toSpliced(3, 0, events[2]!)],
  "with two swapped events": [2, "it is missing", ([a, b, c, ...rest]) => [a, c, b, ...rest]],
  "with another id": [2, "the hash", changed(2, { id: "another" })],
  "with altered data": [2, "the hash", changed(2, { data: 1 })],
  "with altered meta": [2, "the hash", changed(2, { meta: { by: "me" } })],
  "with another type": [2, "the hash", changed(2, { type: "U" })],
  "with another time": [3, "the hash", changed(3, { time: "1970-01-01T00:00:01.001Z" })],
  "with a time that goes back": [4, "before that of its predecessor", changed(4, { time: "1970-01-01T00:00:00.999Z" })],
  "with a time in another format": [1, "not one of UTC", changed(1, { time: "1970-01-01T00:00:01Z" })],
  "without a time": [1, "not one of UTC", changed(1, { time: undefined })],
  "with another stream": [3, "the hash", changed(3, { stream: "c" })],
  "with another version": [4, "its version is 4, the next one of its stream is 3", changed(4, { version: 4 })],
  "with a version as text": [4, "the next one of its stream is 3", changed(4, { version: "3" })],
  "with a position as text": [4, "has no position", changed(4, { position: "4" })],
  "with an upper-case hash": [4, "the hash", (events) => changed(4, { hash: events[3]!.hash.toUpperCase() })(events)],
  "without a hash": [4, "the hash", changed(4, { hash: undefined })],
  "without data": [4, "data or meta is missing", changed(4, { data: undefined })],
  "without meta": [4, "data or meta is missing", changed(4, { meta: undefined })],
  "with an invalid stream name": [4, "the stream's name", changed(4, { stream: "a\nb" })],
  "with an invalid type": [4, "the event's type", changed(4, { type: "" })],
  "with an id that is no text": [4, "the event's id", changed(4, { id: 7 })],
  "with an oversized event": [4, "has at most 262144 bytes", changed(4, { data: `${"é".repeat(131_070)}x` })],
};

describe("an import creates no log from a source", () => {
  for (const [what, [position, reason, spoil]] of Object.entries(faults)) {
    test(what, async () => {
      const file = newLogPath();
      const events = spoil(await recorded()) as StoredEvent[];
      const refused = await refusalOf(importSqliteLog({ file, events: each(events) }));
      expect(refused).toMatchObject({
        name: "ImportRefused",
        position,
        message: expect.stringMatching(new RegExp(`^position ${position}: .*${reason}`)),
      });
      expect(leftIn(file)).toEqual([]);
    });
  }

  test("with a failure halfway", async () => {
    const file = newLogPath();
    const events = async function* () {
      yield* await recorded();
      throw new Error("the pipe broke");
    };
    expect(await refusalOf(importSqliteLog({ file, events: events() }))).toMatchObject({ message: "the pipe broke" });
    expect(leftIn(file)).toEqual([]);
  });

  test("if it is killed, and the next import succeeds", async () => {
    const file = newLogPath();
    const program = fileURLToPath(new URL("./programs/import-without-end.ts", import.meta.url));
    const child = Bun.spawn([process.execPath, program, file], { stdout: "pipe", stderr: "inherit" });
    for await (const told of child.stdout) if (told.length > 0) break;
    expect(leftIn(file).some((name) => name.endsWith(".partial"))).toBe(true);
    child.kill("SIGKILL");
    await child.exited;
    expect(existsSync(file)).toBe(false);
    // The remains of the killed import do not disturb the next one.
    await importSqliteLog({ file, events: each(await recorded()) });
  });
});

describe("an import does not replace", () => {
  test("a log with events", async () => {
    const file = newLogPath();
    const events = await recorded();
    {
      await using store = await openSqliteStore({ file, writerThread: false });
      await store.append("mine", [newEvent()]);
    }
    expect(await refusalOf(importSqliteLog({ file, events: each(events) }))).toMatchObject({ name: "TargetTaken" });
    await using store = await openSqliteStore({ file, writerThread: false });
    expect(await take(store.read())).toMatchObject([{ stream: "mine" }]);
  });

  test("a log with an owner, even an empty one", async () => {
    const file = newLogPath();
    await using _owner = await openSqliteStore({ file, owner: true, writerThread: false });
    expect(await refusalOf(importSqliteLog({ file, events: each([]) }))).toBeInstanceOf(StoreOwned);
  });

  test("an empty log that another program has open", async () => {
    const file = newLogPath();
    await using store = await openSqliteStore({ file, writerThread: false });
    const refused = await refusalOf(importSqliteLog({ file, events: each(await recorded()) }));
    expect(refused).toMatchObject({ name: "TargetTaken", message: expect.stringContaining("in use") });
    expect(await store.append("a", [newEvent()])).toMatchObject({ first: 1 });
  });

  test("a log that another program appended to during the import", async () => {
    const file = newLogPath();
    const events = async function* () {
      yield* await recorded();
      await using store = await openSqliteStore({ file, writerThread: false });
      await store.append("mine", [newEvent()]);
    };
    expect(await refusalOf(importSqliteLog({ file, events: events() }))).toMatchObject({ name: "TargetTaken" });
    await using store = await openSqliteStore({ file, writerThread: false });
    expect(await store.head()).toMatchObject({ position: 1 });
  });

  test("another application's database or a file that is no database", async () => {
    const theirs = newLogPath();
    const db = new DatabaseSync(theirs);
    db.exec("CREATE TABLE events (x)");
    db.close();
    const text = newLogPath();
    writeFileSync(text, "a letter. ".repeat(200));
    for (const file of [theirs, text]) {
      const refused = await refusalOf(importSqliteLog({ file, events: each([]) }));
      expect(refused).toMatchObject({ name: "StoreUnusable" });
    }
  });

  test("a write-ahead log without its database", async () => {
    const file = newLogPath();
    writeFileSync(`${file}-wal`, "left");
    expect(await refusalOf(importSqliteLog({ file, events: each([]) }))).toMatchObject({ name: "TargetTaken" });
    expect(leftIn(file)).toEqual(["log.sqlite-wal"]);
  });
});
