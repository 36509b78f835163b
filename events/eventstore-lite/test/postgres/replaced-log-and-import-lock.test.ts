import { expect, test } from "bun:test";
import { type NewEvent, openSqliteStore, type Recorded } from "eventstore-lite";
import { importPostgresLog, openPostgresStore, restorePostgresLog } from "eventstore-lite/postgres";
import { LogDiverged, StoreBusy } from "eventstore-lite/testing";
import postgres from "postgres";
import { newEvent, newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { newDatabase } from "../../src/testing/postgres-server.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();

/** Makes a log of three events, and returns the file of its backup and the events. */
async function copied() {
  const file = newLogPath();
  await using store = await openSqliteStore({ file: newLogPath() });
  await store.append("a", newEvents(3));
  await store.backup(file);
  return { file, events: await take(store.readStored()) };
}

/**
 * Returns the events as an iterable that yields them only once they are released, and tells when it was asked for them.
 */
function heldBack(events: readonly Recorded<NewEvent>[]) {
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  async function* each(): AsyncGenerator<Recorded<NewEvent>, void, void> {
    asked.resolve();
    await released.promise;
    yield* events;
  }
  return { asked: asked.promise, release: released.resolve, events: each() };
}

test.each(["a restore", "an import"])(
  "%s under an open store stops it before it writes to the new log",
  async (what) => {
    const url = await newDatabase();
    const schema = "log";
    const { file, events } = await copied();
    const open = () => openPostgresStore({ url, schema });
    await using appending = await open();
    await using leasing = await open();
    await using saving = await open();
    await using removing = await open();
    const lease = await leasing.leases.acquire("role", { holder: "before", ttlMs: 60_000 });
    if (what === "a restore") await restorePostgresLog({ url, schema, file });
    else await importPostgresLog({ url, schema, events: eachOf(events) });
    await using now = await open();
    const held = await now.leases.acquire("role", { holder: "after", ttlMs: 60_000 });
    expect([lease?.token, held?.token]).toEqual([1, 1]);
    await now.snapshots.save("kept", { version: 1, position: 1, state: "{}" });

    for (const stale of [appending, leasing, saving, removing]) expect(stale.epoch).not.toBe(now.epoch);
    expect(await refusalOf(appending.append("a", [newEvent()]))).toBeInstanceOf(LogDiverged);
    expect(await refusalOf(leasing.leases.release(lease!))).toBeInstanceOf(LogDiverged);
    expect(await refusalOf(saving.snapshots.save("own", { version: 1, position: 0, state: "{}" }))).toBeInstanceOf(
      LogDiverged,
    );
    expect(await refusalOf(removing.snapshots.remove(["kept"]))).toBeInstanceOf(LogDiverged);
    for (const stale of [appending, leasing, saving, removing]) expect(await stale.failed).toBeInstanceOf(LogDiverged);
    expect(await take(now.readStored())).toEqual(events);
    expect((await now.snapshots.list("")).map(({ name }) => name)).toEqual(["kept"]);
    expect(await now.leases.list(["role"])).toMatchObject([{ holder: "after" }]);
  },
);

async function* eachOf(events: readonly Recorded<NewEvent>[]) {
  yield* events;
}

test("a store with a replaced log acquires no lease", async () => {
  const url = await newDatabase();
  await using stale = await openPostgresStore({ url, schema: "log" });
  await restorePostgresLog({ url, schema: "log", file: (await copied()).file });
  expect(await refusalOf(stale.leases.acquire("role", { holder: "h", ttlMs: 1_000 }))).toBeInstanceOf(LogDiverged);
});

test("an import in progress refuses other imports, restores and openings until it is complete", async () => {
  const url = await newDatabase();
  const target = { url, schema: "log" };
  const { file, events } = await copied();
  const first = heldBack(events);
  const importing = importPostgresLog({ ...target, events: first.events });
  await first.asked;
  for (const attempt of [
    () => restorePostgresLog({ ...target, file }),
    () => importPostgresLog({ ...target, events: eachOf(events) }),
    () => openPostgresStore(target),
  ]) {
    const refusal = await refusalOf(attempt());
    expect(refusal).toBeInstanceOf(StoreBusy);
    expect((refusal as Error).message).toContain("a log is being restored or imported there");
  }
  // A log in another schema of the same database is not affected.
  await (await openPostgresStore({ url, schema: "other" }))[Symbol.asyncDispose]();
  first.release();
  await importing;
  await using store = await openPostgresStore(target);
  expect(await take(store.readStored())).toEqual(events);
});

test("a cut connection releases the lock of its import, which then imports nothing", async () => {
  const url = await newDatabase();
  const target = { url, schema: "log" };
  const { events } = await copied();
  const cut = heldBack(events);
  const importing = refusalOf(importPostgresLog({ ...target, events: cut.events }));
  await cut.asked;
  const admin = postgres(url, { max: 1, onnotice: () => {} });
  await admin`SELECT pg_terminate_backend(pid, 10000) FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  await using store = await openPostgresStore(target);
  await store.append("a", [newEvent()]);
  cut.release();
  expect(await importing).toBeInstanceOf(Error);
  expect((await store.head()).position).toBe(1);
  const left = await admin`SELECT FROM pg_namespace WHERE nspname LIKE 'log import%'`;
  await admin.end();
  expect(left).toHaveLength(0);
});
