// These tests run parts of the service inside the test process.
import { copyFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { importSqliteLog, openSqliteStore, type EventStore } from "eventstore-lite";
import { startPostgres } from "eventstore-lite/testing";
import { codec, type Event, type Recorded } from "../../events/event-types-and-codec.ts";
import { joinInstances } from "../../src/log/instance-heartbeats.ts";
import { noticeCopy, recordRestore } from "../../src/log/notice-and-record-restore.ts";
import { postgresStore, sqliteStore, type StorePlace } from "../../src/log/store-backends.ts";
import { makeId, sleep } from "../../src/platform/clock-ids-and-timers.ts";
import { secret } from "../../src/platform/secret.ts";
import { createEventLog, SERVICE_METADATA, STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { newLogFile, SILENT, toLogContext } from "../harness/in-process/temporary-log.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const YEAR_MS = 365 * 86_400_000;

const server = startPostgres();

let now = Date.parse("2026-03-01T08:00:00.000Z");
const FORGOTTEN: NewEvent = { type: "PersonForgotten", data: { hashes: [], keys: [] } };
const ADDED: NewEvent = addedOf({ id: "1" }, { basis: "none" });

/** Opens a log, runs `work` on it, and closes it. */
async function on<Result>(file: string, work: (store: EventStore<Event>) => Promise<Result>): Promise<Result> {
  await using store = await openSqliteStore<Event>({ file, codec, clock: () => now });
  return await work(store);
}

/** Appends events as a command does. */
function append(file: string, ...newEvents: NewEvent[]): Promise<unknown> {
  return on(file, (store) => createEventLog(store, makeId).append(STREAMS.outreach, newEvents, SERVICE_METADATA));
}

/** Opens the log as a service does, and returns its LogRestored events. */
function serve(file: string): Promise<Recorded<"LogRestored">[]> {
  return on(file, async (store) => {
    await recordRestore(createEventLog(store, makeId), SILENT);
    return (await Array.fromAsync(store.read({ types: ["LogRestored"] }))) as Recorded<"LogRestored">[];
  });
}

async function backedUp(file: string): Promise<string> {
  const copy = newLogFile();
  await on(file, (store) => store.backup(copy));
  return copy;
}

async function imported(file: string): Promise<string> {
  const target = newLogFile();
  await on(file, (store) => importSqliteLog({ file: target, events: store.readStored() }));
  return target;
}

async function newLog(): Promise<string> {
  const file = newLogFile();
  await append(file, ADDED, ADDED);
  return file;
}

test("reopening an original log records no restore", async () => {
  const file = await newLog();
  expect([await serve(file), await serve(file)]).toEqual([[], []]);
});

test("a restore is recorded when a service, not a command, first opens the copy", async () => {
  const copy = await backedUp(await newLog());
  await append(copy, FORGOTTEN);
  now += 3 * YEAR_MS;
  const opened = now;
  const [restored] = await serve(copy);
  expect(restored).toMatchObject({ position: 4, data: { cause: "restore", found_position: 3 } });
  expect(Date.parse(restored?.time ?? "")).toBe(opened);
  now += YEAR_MS;
  expect(await serve(copy)).toHaveLength(1);
});

test("every restored copy of a file records a restore, and so does a copy's copy", async () => {
  const copy = await backedUp(await newLog());
  await append(copy, FORGOTTEN);
  const [first, second] = [newLogFile(), newLogFile()];
  for (const place of [first, second]) {
    copyFileSync(copy, place);
    expect(await serve(place)).toHaveLength(1);
  }
  const next = await backedUp(second);
  expect((await serve(next)).map(({ data }) => data.cause)).toEqual(["restore", "restore"]);
});

test("imports of original and restored logs and copies of empty logs are recorded", async () => {
  const file = await newLog();
  expect((await serve(await imported(file))).map(({ data }) => data.cause)).toEqual(["import"]);
  const copy = await backedUp(file);
  await serve(copy);
  expect((await serve(await imported(copy))).map(({ data }) => data.cause)).toEqual(["restore", "import"]);
  const empty = newLogFile();
  await on(empty, () => Promise.resolve());
  expect((await serve(await backedUp(empty))).map(({ data }) => data.found_position)).toEqual([0]);
});

test("each declaration of a restore by the operator is recorded once", async () => {
  const file = await newLog();
  for (const restores of [1, 2]) {
    await sqliteStore(file).beginEpoch("operator", "test");
    expect((await serve(file)).map(({ data }) => data.cause)).toEqual(Array(restores).fill("operator"));
    expect(await serve(file)).toHaveLength(restores);
  }
});

/** Creates a log on a server with an event of a service, then a copy of its database, which contains the same log. */
async function copiedOnServer() {
  const { newDatabase, ask, url: urlOf } = await server;
  const placeAt = (url: string) => postgresStore({ url: secret(url), shown: "the log" });
  const url = await newDatabase();
  const place = placeAt(url);
  {
    await using store = await place.open({ codec });
    await createEventLog(store, makeId).append(STREAMS.outreach, [ADDED], SERVICE_METADATA);
  }
  const name = `copy_of_${new URL(url).pathname.slice(1)}`;
  await ask(`CREATE DATABASE ${name} TEMPLATE ${new URL(url).pathname.slice(1)}`);
  return { place, copy: placeAt(urlOf(name)) };
}

/** Opens the log as a service does, with the check for a copy before. Returns the causes of the recorded restores. */
async function causesOf(place: StorePlace): Promise<string[]> {
  await noticeCopy(place, "test", SILENT);
  await using store = await place.open({ codec });
  await recordRestore(createEventLog(store, makeId), SILENT);
  const told = (await Array.fromAsync(store.read({ types: ["LogRestored"] }))) as Recorded<"LogRestored">[];
  return told.map(({ data }) => data.cause);
}

test("the first start of a copied database records a restore, and its original none", async () => {
  const { place, copy } = await copiedOnServer();
  expect(await Promise.all([1, 2, 3].map(() => causesOf(copy)))).toEqual([["copy"], ["copy"], ["copy"]]);
  expect([await causesOf(copy), await causesOf(place)]).toEqual([["copy"], []]);
});

test("a moved log with a living instance records no copy and refuses an operator's epoch", async () => {
  const { copy } = await copiedOnServer();
  await using store = await copy.open({ codec });
  const context = toLogContext(createEventLog(store, makeId), { sleep: beatFast });
  const own = { id: makeId(), url: "http://living", version: "1", started_at: "", configuration: "", settings: {} };
  await using _instances = await joinInstances(context, own);
  expect(await causesOf(copy)).toEqual([]);
  expect(await copy.isElsewhere()).toBe(true);
  for (const refused of [() => copy.beginEpoch("operator", "test"), () => copy.import(noEvents())]) {
    const refusal = await refused().catch((fault: unknown) => fault);
    expect(refusal).toMatchObject({ kind: "busy", message: expect.stringContaining(own.id) });
  }
  expect(await store.confirm(await store.head())).toBe("same");
  expect(await copy.isElsewhere()).toBe(false);
});

test("an undetectable restore is reported with the GRANT that makes it detectable", async () => {
  const { newDatabase, ask } = await server;
  const url = new URL(await newDatabase());
  const store = () => postgresStore({ url: secret(url.href), shown: "the log" });
  await (await store().open({ codec }))[Symbol.asyncDispose]();
  expect(await store().unprotected()).toEqual([]);
  await ask("CREATE ROLE plain LOGIN");
  const own = new URL(await newDatabase());
  await ask(`ALTER DATABASE ${own.pathname.slice(1)} OWNER TO plain`);
  own.username = "plain";
  const plain = postgresStore({ url: secret(own.href), shown: "the log" });
  await (await plain.open({ codec }))[Symbol.asyncDispose]();
  expect(await plain.unprotected()).toEqual([
    "the log: a start does not notice a base backup that was put back without a recovery target: GRANT EXECUTE ON FUNCTION pg_stat_file(text) TO plain",
  ]);
});

/**
 * Waits only 100 ms between two heartbeats, because a check for living instances waits only a second for the next one.
 */
function beatFast(_ms: number, signal: AbortSignal): Promise<void> {
  return sleep(100, signal);
}

async function* noEvents() {}

test("instances that open a copy at once record one restore", async () => {
  const copy = await backedUp(await newLog());
  const told = await on(copy, async (store) => {
    const eventLog = createEventLog(store, makeId);
    await Promise.all([recordRestore(eventLog, SILENT), recordRestore(eventLog, SILENT)]);
    return Array.fromAsync(store.read({ types: ["LogRestored"] }));
  });
  expect(told).toHaveLength(1);
});
