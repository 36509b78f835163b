import { expect, test } from "bun:test";
import { importSqliteLog, type NewEvent, openSqliteStore, type Recorded } from "eventstore-lite";
import { importPostgresLog, openPostgresStore } from "eventstore-lite/postgres";
import { ImportRefused, TargetTaken } from "eventstore-lite/testing";
import postgres from "postgres";
import { newEvent, newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "../temporary-logs.ts";
import { newDatabase } from "../../src/testing/postgres-server.ts";

const newLogPath = temporaryLogs();

async function* each(events: readonly Recorded<NewEvent>[]): AsyncGenerator<Recorded<NewEvent>, void, void> {
  yield* events;
}

/** Returns events of two streams: so many that an import needs several queries to insert them. */
async function recorded(): Promise<Recorded<NewEvent>[]> {
  await using store = await openSqliteStore({ file: newLogPath() });
  await store.append("a", [newEvent("T", { text: "é\n\u2028\ud800\0'\"\\" }), newEvent("T", null)], { key: "k" });
  await store.append("b", newEvents(1_500));
  await store.append("a", newEvents(3));
  return await take(store.readStored());
}

async function schemasOf(url: string): Promise<string[]> {
  const sql = postgres(url, { max: 1 });
  const schemas = await sql`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'log%' ORDER BY nspname`;
  await sql.end();
  return schemas.map(({ nspname }) => String(nspname));
}

test("an import gives the same log, which continues and can be exported unchanged", async () => {
  const url = await newDatabase();
  const events = await recorded();
  const head = await importPostgresLog({ url, schema: "log", events: each(events) });
  {
    await using store = await openPostgresStore({ url, schema: "log" });
    expect(store.begunAs).toBe("import");
    expect(await store.head()).toEqual(head);
    expect(await take(store.readStored())).toStrictEqual(events);
    expect(await store.verify()).toMatchObject({ ok: true, checked: events.length });
    const next = await store.append("a", [newEvent()], { expected: 5, key: "k" });
    expect(next).toMatchObject({ first: events.length + 1, version: 6, repeated: false });
    expect(await store.leases.acquire("l", { holder: "h", ttlMs: 1_000 })).toMatchObject({ token: 1 });
    const file = newLogPath();
    const back = await importSqliteLog({ file, events: store.readStored() });
    expect(back).toEqual(await store.head());
  }
  expect(await schemasOf(url)).toEqual(["log"]);
});

test("a query slower than a service's time-out does not end an import", async () => {
  const url = await newDatabase();
  const events = await recorded();
  const blocker = postgres(url, { max: 1 });
  const blocked = Promise.withResolvers<void>();
  let blocking: Promise<unknown> | undefined;
  async function* held(): AsyncGenerator<Recorded<NewEvent>, void, void> {
    yield* events.slice(0, 1_000);
    blocking = blocker.begin(async (sql) => {
      const [place] = await sql`SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'log import %'`;
      await sql`LOCK TABLE ${sql(String(place!["name"]))}.events`;
      blocked.resolve();
      await sql`SELECT pg_sleep(4.5)`;
    });
    await blocked.promise;
    yield* events.slice(1_000);
  }
  expect(await importPostgresLog({ url, schema: "log", events: held() })).toMatchObject({ position: events.length });
  await blocking;
  await blocker.end();
});

test("an import keeps exactly the rights granted on the log before", async () => {
  const url = await newDatabase();
  await (await openPostgresStore({ url, schema: "log" }))[Symbol.asyncDispose]();
  const role = `app_${new URL(url).pathname.slice(1)}`;
  const owner = postgres(url, { max: 1 });
  await owner.unsafe(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA log TO ${role};
    GRANT SELECT ON ALL TABLES IN SCHEMA log TO ${role}; GRANT SELECT ON log.events TO PUBLIC;
    REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA log FROM PUBLIC;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA log TO ${role} WITH GRANT OPTION;
    GRANT EXECUTE ON FUNCTION log.forget_batches TO PUBLIC`);
  const events = await recorded();
  const rightsOf = () => owner<{ name: string; given: string }[]>`
    WITH object AS (
      SELECT nspname AS name, nspacl AS acl FROM pg_namespace WHERE nspname = 'log'
      UNION ALL SELECT relname, relacl FROM pg_class WHERE relnamespace = 'log'::regnamespace AND relkind = 'r'
      UNION ALL SELECT proname, proacl FROM pg_proc WHERE pronamespace = 'log'::regnamespace)
    SELECT name, entry::text AS given FROM object, unnest(acl) entry ORDER BY name, given`;
  const before = await rightsOf();
  await importPostgresLog({ url, schema: "log", events: each(events) });
  expect(before).not.toBeEmpty();
  expect([...(await rightsOf())]).toEqual([...before]);
  await owner.end();

  const asRole = new URL(url);
  asRole.username = role;
  await using store = await openPostgresStore({ url: asRole.href, schema: "log" });
  expect(await store.append("a", [newEvent()])).toMatchObject({ first: events.length + 1 });
  expect(await schemasOf(url)).toEqual(["log"]);
});

test("an import with an invalid event is refused with a reason and imports nothing", async () => {
  const url = await newDatabase();
  const events = await recorded();
  const last = events.length - 1;
  const spoilt: readonly (readonly [RegExp, Recorded<NewEvent>[]])[] = [
    [/hash does not follow/, events.with(last, { ...events[last]!, data: { other: true } })],
    [/its version is 9, the next one of its stream is 5/, events.with(last, { ...events[last]!, version: 9 })],
    [/it is missing/, events.toSpliced(last - 1, 1)],
  ];
  for (const [reason, wrong] of spoilt) {
    const refusal = await refusalOf(importPostgresLog({ url, schema: "log", events: each(wrong) }));
    expect(refusal).toBeInstanceOf(ImportRefused);
    expect((refusal as Error).message).toMatch(reason);
  }
  expect(await schemasOf(url)).toEqual([]);
});

test("an import replaces a log without events and nothing else", async () => {
  const url = await newDatabase();
  const events = await recorded();
  {
    await using store = await openPostgresStore({ url, schema: "log" });
    await importPostgresLog({ url, schema: "log", events: each(events.slice(0, 2)) });
    expect((await store.head()).position).toBe(2);
  }
  expect(await refusalOf(importPostgresLog({ url, schema: "log", events: each(events) }))).toBeInstanceOf(TargetTaken);
  const other = importPostgresLog({ url, schema: "public", events: each(events) });
  expect(await refusalOf(other)).toBeInstanceOf(TargetTaken);
  expect(await schemasOf(url)).toEqual(["log"]);
});
