import { expect, test } from "bun:test";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { EventStore } from "eventstore-lite";
import { openPostgresStore, migrate, openDatabase } from "eventstore-lite/postgres";
import { StoreUnavailable, StoreUnusable } from "eventstore-lite/testing";
import postgres from "postgres";
import { newEvent, newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { newDatabase } from "../../src/testing/postgres-server.ts";

/** Connects to the database as the owner of the tables, who has all rights on them. */
function owner(url: string) {
  return postgres(url, { max: 1, onnotice: () => {} });
}

test("concurrent openings create one log", async () => {
  const url = await newDatabase();
  const stores = await Promise.all([1, 2, 3, 4].map(() => openPostgresStore({ url })));
  expect(new Set(stores.map(({ id }) => id)).size).toBe(1);
  expect(new Set(stores.map(({ epoch }) => epoch)).size).toBe(1);
  for (const store of stores) await store[Symbol.asyncDispose]();
});

test("a newer format is refused, and each migration of an older one runs once", async () => {
  const database = openDatabase({ url: await newDatabase(), connections: 1, name: "test" });
  const options = { schema: "own", component: "notes" };
  const [first, second] = ["CREATE TABLE notes (id integer)", "ALTER TABLE notes ADD COLUMN text text"] as const;
  await migrate(database, { ...options, migrations: [first] });
  await Promise.all([1, 2, 3].map(() => migrate(database, { ...options, migrations: [first, second] })));
  await database.run((sql) => sql`INSERT INTO own.notes VALUES (1, 'kept')`);
  // Migrations of another component have their own numbers.
  await migrate(database, { ...options, component: "others", migrations: ["CREATE TABLE others (id integer)"] });
  const refusal = await refusalOf(migrate(database, { ...options, migrations: [first] }));
  expect(refusal).toBeInstanceOf(StoreUnusable);
  expect((refusal as Error).message).toBe("notes has format 2; this program knows formats up to 1");
  // A failed migration leaves nothing behind.
  const broken = migrate(database, { ...options, migrations: [first, second, "DROP TABLE notes; no SQL"] });
  expect(await refusalOf(broken)).toMatchObject({ name: "PostgresError" });
  expect([...(await database.run((sql) => sql`SELECT * FROM own.notes`))]).toEqual([{ id: 1, text: "kept" }]);
  await database.close();
});

test("SQL cannot change or remove events, even as the owner of the tables", async () => {
  const url = await newDatabase();
  await using store = await openPostgresStore({ url });
  await store.append("a", newEvents(2));
  const sql = owner(url);
  for (const change of [
    "UPDATE eventstore.events SET data = '1'",
    "DELETE FROM eventstore.events",
    "TRUNCATE eventstore.events",
  ]) {
    expect(await refusalOf(sql.unsafe(change))).toMatchObject({ message: "events are append-only" });
  }
  await sql.end();
  expect(await store.verify()).toMatchObject({ ok: true, checked: 2 });
});

test("a waiting append sees concurrent changes, even with repeatable read as the default", async () => {
  const url = await newDatabase();
  const sql = owner(url);
  await sql.unsafe(
    `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_isolation = 'repeatable read'`,
  );
  await using store = await openPostgresStore({ url });
  const lease = (await store.leases.acquire("role", { holder: "one", ttlMs: 60_000 }))!;
  let appending: Promise<unknown> | undefined;
  await sql.begin(async (other) => {
    await other`SELECT FROM eventstore.turn FOR UPDATE`;
    appending = refusalOf(store.append("a", [newEvent()], { fence: { lease: "role", token: lease.token } }));
    while ((await other`SELECT FROM pg_locks WHERE NOT granted`).length === 0);
    await other`UPDATE eventstore.leases SET holder = 'two', token = token + 1`;
  });
  await sql.end();
  expect(await appending).toMatchObject({ name: "LeaseLost" });
});

test("functions without sequential scans are not JIT-compiled", async () => {
  const url = await newDatabase();
  await (await openPostgresStore({ url }))[Symbol.asyncDispose]();
  const sql = owner(url);
  const functions = await sql<{ name: string; settings: readonly string[] }[]>`
    SELECT proname AS name, proconfig AS settings FROM pg_proc
    WHERE pronamespace = 'eventstore'::regnamespace AND 'enable_seqscan=off' = ANY (proconfig)`;
  await sql.end();
  expect(functions.map(({ name }) => name)).toContain("append");
  expect(functions.filter(({ settings }) => !settings.includes("jit=off"))).toEqual([]);
});

test("a role that may only read and call functions runs a store but cannot write tables", async () => {
  const url = await newDatabase();
  await (await openPostgresStore({ url }))[Symbol.asyncDispose]();
  const sql = owner(url);
  const role = `app_${new URL(url).pathname.slice(1)}`;
  await sql.unsafe(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA eventstore TO ${role};
    GRANT SELECT ON ALL TABLES IN SCHEMA eventstore TO ${role};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA eventstore TO ${role}`);
  await sql.end();
  const asRole = new URL(url);
  asRole.username = role;
  {
    await using store = await openPostgresStore({ url: asRole.href });
    await store.append("a", [newEvent()], { key: "k", expected: "none" });
    await store.snapshots.save("s", { version: 1, position: 1, state: "{}" });
    expect(await store.leases.acquire("l", { holder: "h", ttlMs: 1_000 })).toMatchObject({ token: 1 });
    expect(await take(store.read({ stream: "a", until: new Date(Date.now() + 60_000) }))).toHaveLength(1);
  }
  const limited = owner(asRole.href);
  for (const table of [
    "events",
    "idempotency_keys",
    "leases",
    "snapshots",
    "batches",
    "epochs",
    "turn",
    "segments",
    "archived_streams",
    "archived_keys",
  ]) {
    expect(await refusalOf(limited.unsafe(`INSERT INTO eventstore.${table} DEFAULT VALUES`))).toMatchObject({
      code: "42501",
    });
    expect(await refusalOf(limited.unsafe(`DELETE FROM eventstore.${table}`))).toMatchObject({ code: "42501" });
  }
  await limited.end();
});

test("a read by types uses their index in both directions", async () => {
  const url = await newDatabase({ pooled: false });
  const sql = owner(url);
  const use = async (work: (store: EventStore) => Promise<void>): Promise<void> => {
    {
      await using store = await openPostgresStore({ url });
      await work(store);
    }
    // The server updates its counts of what a connection has read only once that connection has ended.
    const open = () => sql`SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`;
    while ((await open()).length > 0) await delay(20);
  };
  const countRead = async (): Promise<number> => {
    const [row] = await sql<{ read: number }[]>`SELECT (seq_tup_read + idx_tup_fetch)::int AS read
      FROM pg_stat_user_tables WHERE relname = 'events'`;
    return row!.read;
  };
  await use(async (store) => {
    for (let batch = 0; batch < 10; batch += 1) await store.append("a", newEvents(1_000));
    await store.append("a", [newEvent("Rare")]);
  });
  await sql`VACUUM ANALYZE eventstore.events`;
  const before = await countRead();
  const types = [newEvent().type, "Rare", "None"];
  const positions: number[] = [];
  await use(async (store) => {
    for await (const { position } of store.read({ types })) positions.push(position);
    for await (const { position } of store.read({ types, backwards: true })) positions.push(position);
    expect(await take(store.read({ types: ["Rare"] }))).toHaveLength(1);
  });
  expect(positions).toHaveLength(20_002);
  expect(positions.slice(0, 10_001)).toEqual(positions.slice(10_001).toReversed());
  // Reading an event costs one row by its position, and perhaps one by its entry in the index.
  expect((await countRead()) - before).toBeLessThan(2.5 * positions.length);
  await sql.end();
});

test("an altered or removed event is found with its position", async () => {
  const url = await newDatabase();
  await using store = await openPostgresStore({ url });
  await store.append("a", newEvents(600));
  const sql = owner(url);
  await sql`ALTER TABLE eventstore.events DISABLE TRIGGER USER`;
  const faultsOf = async (change: string): Promise<unknown> => {
    await sql.unsafe(`CREATE TABLE before AS SELECT * FROM eventstore.events; ${change}`);
    const { fault } = await store.verify();
    await sql.unsafe(
      `DELETE FROM eventstore.events; INSERT INTO eventstore.events SELECT * FROM before; DROP TABLE before`,
    );
    return fault;
  };
  const hash = "the hash does not follow from the event and its predecessor";
  const update = "UPDATE eventstore.events SET";
  expect(await faultsOf(`${update} data = '{}' WHERE position = 555`)).toEqual({ position: 555, reason: hash });
  expect(await faultsOf(`${update} hash = sha256('') WHERE position = 3`)).toEqual({ position: 3, reason: hash });
  expect(await faultsOf("DELETE FROM eventstore.events WHERE position = 7")).toEqual({
    position: 7,
    reason: "the event is missing",
  });
  expect(await store.verify()).toMatchObject({ ok: true, checked: 600 });
  await sql.end();
});

test.each([
  ["postgres://user:geheim@db.example/log", /sslmode=verify-full/],
  ["postgres://user:geheim@db.example/log?sslmode=require", /sslmode=verify-full/],
  ["postgres://user:geheim@db.example:no-port/log", /cannot be read/],
  ["postgres://user:geheim@db.example/log?sslmode=verify-full&sslrootcert=/nope.crt", /^sslrootcert=\/nope.crt cannot/],
])("an unverified or invalid address is refused without revealing its password: %s", async (url, reason) => {
  const refusal = (await refusalOf(openPostgresStore({ url }))) as Error;
  expect(refusal).toBeInstanceOf(StoreUnusable);
  expect(refusal.message).toMatch(reason);
  expect(Bun.inspect(refusal)).not.toContain("geheim");
});

test("only the checked server is contacted for an ambiguous address", async () => {
  let asked = 0;
  const other = createServer((socket) => {
    asked += 1;
    socket.destroy();
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const url = `postgres://localhost:1#,127.0.0.1:${port}/log`;
  expect(await refusalOf(openPostgresStore({ url }))).toBeInstanceOf(StoreUnavailable);
  expect(asked).toBe(0);
  other.close();
});

test("a function that shadows one of PostgreSQL's own is not called", async () => {
  const url = await newDatabase();
  const sql = owner(url);
  // This function fits the call better than PostgreSQL's own, so a log without a fixed search path would call it.
  await sql.unsafe(`CREATE FUNCTION public.pg_advisory_xact_lock(integer) RETURNS void LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'called with the rights of %', current_user; END $$`);
  await sql.end();
  await using store = await openPostgresStore({ url });
  expect(await store.head()).toMatchObject({ position: 0 });
});

test("a schema can have any name that PostgreSQL accepts", async () => {
  await using store = await openPostgresStore({ url: await newDatabase(), schema: `a "log" of $& and $1` });
  await store.append("a", newEvents(2));
  expect(await take(store.read({ stream: "a" }))).toHaveLength(2);
});
