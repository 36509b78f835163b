import { expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beginSqliteEpoch } from "../../src/sqlite/ownership.ts";
import { openSqliteStore } from "eventstore-lite";
import {
  beginPostgresEpoch,
  isPostgresLogElsewhere,
  knownPostgresPlace,
  openPostgresStore,
  openDatabase,
} from "eventstore-lite/postgres";
import { LogDiverged, StoreOwned } from "eventstore-lite/testing";
import { newEvent, newEvents, refusalOf } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { startPostgres } from "../../src/testing/postgres-server.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();
const server = startPostgres();
const schema = "a log";

/** Makes a log of some events, and returns the URL of its database. */
async function newLog(on?: Awaited<typeof server>): Promise<string> {
  const url = await (on ?? (await server)).newDatabase();
  await using store = await openPostgresStore({ url, schema });
  await store.append("a", newEvents(3));
  return url;
}

const isElsewhere = (url: string): Promise<boolean> => isPostgresLogElsewhere({ url, schema });

/** Opens the log as a service does, and returns its id, its epoch and how that epoch began. */
async function lifeOf(url: string): Promise<{ id: string; epoch: string; begunAs: string }> {
  await using store = await openPostgresStore({ url, schema });
  const { id, epoch, begunAs } = store;
  return { id, epoch, begunAs };
}

test("a log stays in its place over a crash of its server", async () => {
  await using own = await startPostgres();
  const url = await newLog(own);
  expect(await isElsewhere(url)).toBe(false);
  await own.stop("immediate");
  await own.start();
  await own.ask("CHECKPOINT");
  expect(await isElsewhere(url)).toBe(false);
  const before = await lifeOf(url);
  await beginPostgresEpoch({ url, schema }, "copy");
  expect(await lifeOf(url)).toEqual(before);
  expect(await isElsewhere(await own.newDatabase())).toBe(false);
});

test("a copy of the database is recognized and continues in one new epoch", async () => {
  const { ask, url: urlOf } = await server;
  const url = await newLog();
  await ask(`CREATE DATABASE copied TEMPLATE ${new URL(url).pathname.slice(1)}`);
  const copy = urlOf("copied");
  expect([await isElsewhere(url), await isElsewhere(copy)]).toEqual([false, true]);
  const before = await lifeOf(url);
  // Two instances start at once.
  await Promise.all([1, 2].map(() => beginPostgresEpoch({ url: copy, schema }, "copy")));
  const after = await lifeOf(copy);
  expect(after).toMatchObject({ id: before.id, begunAs: "copy" });
  expect(after.epoch).not.toBe(before.epoch);
  expect(await isElsewhere(copy)).toBe(false);
  await using store = await openPostgresStore({ url: copy, schema });
  await using original = await openPostgresStore({ url, schema });
  expect(store.cursor(4)).toMatchObject({ epoch: after.epoch });
  expect(await store.after(original.cursor(3))).toBe(4);
  await original.append("a", [newEvent()]);
  expect(await refusalOf(store.after(original.cursor(4)))).toMatchObject({ reason: "epoch-ended" });
});

test("each part of the place counts separately, and an unknown part is ignored", async () => {
  const url = await newLog();
  const database = openDatabase({ url, connections: 1, name: "test" });
  for (const part of [1, 2, 3, 4, 5]) {
    const noted = async (value: string | null): Promise<boolean> => {
      await database.run((sql) => sql`UPDATE ${sql(schema)}.info SET place[${part}] = ${value}`);
      return isElsewhere(url);
    };
    expect([part, await noted(null), await noted("other")]).toEqual([part, false, true]);
    await beginPostgresEpoch({ url, schema }, "copy");
    expect([part, await isElsewhere(url)]).toEqual([part, false]);
  }
  await database.close();
});

test("a missing right to the files' time is reported, and the time is noted once granted", async () => {
  const { ask, newDatabase } = await server;
  const url = new URL(await newDatabase());
  await ask("CREATE ROLE plain LOGIN");
  await ask(`ALTER DATABASE ${url.pathname.slice(1)} OWNER TO plain`);
  const admin = openDatabase({ url: url.href, connections: 1, name: "test" });
  url.username = "plain";
  const known = () => knownPostgresPlace({ url: url.href, schema });
  await using store = await openPostgresStore({ url: url.href, schema });
  expect(await known()).toEqual({ unknown: ["files"], owner: "plain" });
  await admin.run((sql) => sql`GRANT EXECUTE ON FUNCTION pg_stat_file(text) TO plain`);
  await admin.close();
  expect(await known()).toEqual({ unknown: [], owner: "plain" });
  expect(await isElsewhere(url.href)).toBe(false);
  const database = openDatabase({ url: url.href, connections: 1, name: "test" });
  const noted = () => database.run((sql) => sql`SELECT place[5] IS NOT NULL AS noted FROM ${sql(schema)}.info`);
  expect(await noted()).toMatchObject([{ noted: false }]);
  expect(await store.confirm(await store.head())).toBe("same");
  expect(await noted()).toMatchObject([{ noted: true }]);
  await database.close();
});

test("copied files are recognized by their change time", async () => {
  await using own = await startPostgres();
  const url = await newLog(own);
  const [setting] = await own.ask("SHOW data_directory");
  const version = join(String(setting?.["data_directory"]), "PG_VERSION");
  // The change of the file is repeated until the log counts as a copy: a change within the same second as the file's
  // creation does not show.
  while (!(await isElsewhere(url))) chmodSync(version, 0o600);
});

test("a promotion changes the place until a store that misses no event confirms it", async () => {
  await using own = await startPostgres({ settings: { wal_level: "replica" } });
  const url = await newLog(own);
  await using store = await openPostgresStore({ url, schema });
  const { position, hash } = await store.head();
  const [setting] = await own.ask("SHOW data_directory");
  await own.stop("fast");
  writeFileSync(join(String(setting?.["data_directory"]), "standby.signal"), "");
  await own.start();
  await own.ask("SELECT pg_promote()");
  expect(await isElsewhere(url)).toBe(true);
  expect(await store.confirm({ position: position + 1, hash })).toBe("lost");
  expect(await store.confirm({ position, hash: "00".repeat(32) })).toBe("lost");
  expect(await isElsewhere(url)).toBe(true);
  expect(await store.confirm({ position, hash })).toBe("same");
  expect(await isElsewhere(url)).toBe(false);
  expect((await lifeOf(url)).epoch).toBe(store.epoch);
});

test("a new epoch stops an open store", async () => {
  const url = await newLog();
  await using store = await openPostgresStore({ url, schema });
  await beginPostgresEpoch({ url, schema }, "operator");
  expect(await lifeOf(url)).toMatchObject({ id: store.id, begunAs: "operator" });
  expect(await store.confirm(await store.head())).toBe("replaced");
  expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(LogDiverged);
});

test("an operator can begin a new epoch of a file's log unless it has an owner", async () => {
  const file = newLogPath();
  const epochs = new Set<string>();
  for (const begunAs of ["new", "operator", "operator"]) {
    await using store = await openSqliteStore({ file, owner: true });
    expect(store.begunAs).toBe(begunAs as typeof store.begunAs);
    epochs.add(store.epoch);
    await store.append("a", [newEvent()]);
    const refused = await refusalOf(Promise.try(() => beginSqliteEpoch({ file, holder: "test" })));
    expect(refused).toBeInstanceOf(StoreOwned);
    await store[Symbol.asyncDispose]();
    beginSqliteEpoch({ file, holder: "test" });
  }
  expect(epochs.size).toBe(3);
});
