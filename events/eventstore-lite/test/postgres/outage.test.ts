import { expect, test } from "bun:test";
import { setImmediate } from "node:timers/promises";
import { VersionConflict } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { AppendInDoubt, LogDiverged, StoreOverloaded, StoreUnavailable } from "eventstore-lite/testing";
import postgres from "postgres";
import { newEvent, newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { type Proxy, startProxy } from "../../src/testing/faulty-postgres-proxy.ts";
import { newDatabase, type PostgresServer, startPostgres } from "../../src/testing/postgres-server.ts";

test("appends and reads fail as unavailable during an outage and work again after it", async () => {
  await using server = await startPostgres();
  await using store = await openPostgresStore({ url: await server.newDatabase() });
  await store.append("a", [newEvent()]);
  const abort = new AbortController();
  const followed = take(store.subscribe({ from: 1, signal: abort.signal }), 2);
  await server.stop("immediate");

  // The first call is to acquire a lease, because it can be repeated. An append on the connection that is being lost
  // would be in doubt until the server is back.
  expect(await refusalOf(store.leases.acquire("l", { holder: "h", ttlMs: 1_000 }))).toBeInstanceOf(StoreUnavailable);
  expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(StoreUnavailable);
  expect(await refusalOf(store.head())).toBeInstanceOf(StoreUnavailable);
  expect(await refusalOf(take(store.read()))).toBeInstanceOf(StoreUnavailable);
  expect(await refusalOf(openPostgresStore({ url: server.url("test_1") }))).toBeInstanceOf(StoreUnavailable);

  await server.start();
  expect(await onceBack(() => store.append("a", [newEvent("Later")]))).toMatchObject({ first: 2 });
  expect((await onceBack(() => take(store.read()))).map(({ type }) => type)).toEqual(["Tested", "Later"]);
  // A subscriber continues where it stopped.
  expect((await followed).map(({ type }) => type)).toEqual(["Tested", "Later"]);
});

/** Repeats a call until it succeeds, because calls are refused during the pause after a failed connect. */
async function onceBack<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      await setImmediate();
    }
  }
}

/** Stops the server after it has received a batch and before the store gets the answer. */
async function stopBeforeAnswer(server: PostgresServer, proxy: Proxy): Promise<void> {
  const answered = Promise.withResolvers<void>();
  proxy.decide(({ application, from, type }) => {
    if (application !== "eventstore-lite writer" || from !== "server") return "pass";
    // The server's message DataRow: it has decided on the batch, which is durable soon after.
    if (type === "D") answered.resolve();
    return type === "D" || type === "C" || type === "Z" ? "lose" : "pass";
  });
  await answered.promise;
  await server.stop("fast");
  proxy.decide(() => "pass");
}

test("an unanswered append is settled after the server's restart, and others are refused until then", async () => {
  await using server = await startPostgres();
  await using proxy = await startProxy(await server.newDatabase());
  await using store = await openPostgresStore({ url: proxy.url });
  await store.append("a", [newEvent()]);
  const pending = store.append("a", [newEvent("Pending")]);
  await stopBeforeAnswer(server, proxy);
  // PostgreSQL was stopped before it answered the pending append, so the store refuses every later append. That
  // includes an append queued behind the pending one.
  for (let count = 0; count < 3; count += 1) {
    expect(await refusalOf(store.append("a", [newEvent("Refused")]))).toBeInstanceOf(StoreUnavailable);
  }
  await server.start();
  expect(await pending).toMatchObject({ first: 2, version: 2, repeated: false });
  expect(await store.append("a", [newEvent("Later")], { expected: 2 })).toMatchObject({ first: 3 });
  expect((await take(store.read())).map(({ type }) => type)).toEqual(["Tested", "Pending", "Later"]);
});

test("an append is in doubt if the store closes before the outcome is known", async () => {
  await using server = await startPostgres();
  await using proxy = await startProxy(await server.newDatabase());
  const store = await openPostgresStore({ url: proxy.url });
  await store.append("a", [newEvent()]);
  const pending = refusalOf(store.append("a", [newEvent("Pending")]));
  await stopBeforeAnswer(server, proxy);
  expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(StoreUnavailable);
  await store[Symbol.asyncDispose]();
  expect(await pending).toBeInstanceOf(AppendInDoubt);
});

test("an append on a silently lost connection is settled over another one", async () => {
  const url = await newDatabase();
  await using proxy = await startProxy(url);
  await using store = await openPostgresStore({ url: proxy.url });
  await store.append("a", [newEvent()]);
  let lost = 0;
  // The server's answer is lost, and all that this connection carries later.
  proxy.decide(({ application, from, connection }) => {
    if (application !== "eventstore-lite writer" || from !== "server") return "pass";
    if (lost === 0) lost = connection;
    return connection === lost ? "lose" : "pass";
  });
  expect(await store.append("a", [newEvent("Answered late")])).toMatchObject({ first: 2, repeated: false });
  expect(await take(store.read({ types: ["Answered late"] }))).toHaveLength(1);
});

test("an append that waits too long for its turn is refused as overloaded", async () => {
  const url = await newDatabase();
  await using store = await openPostgresStore({ url });
  const other = postgres(url, { max: 1, onnotice: () => {} });
  const released = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = other.begin(async (sql) => {
    await sql`SELECT FROM eventstore.turn FOR UPDATE`;
    locked.resolve();
    await released.promise;
  });
  await locked.promise;
  expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(StoreOverloaded);
  released.resolve();
  await holding;
  await other.end();
  expect(await store.append("a", [newEvent()])).toMatchObject({ first: 1 });
});

test("a log that lost events seen by the store stops the store", async () => {
  const url = await newDatabase();
  await using store = await openPostgresStore({ url });
  await store.append("a", newEvents(3));
  await using other = await openPostgresStore({ url });
  // Removes the last two events, as on a standby that was promoted before it received them.
  const owner = postgres(url, { max: 1, onnotice: () => {} });
  await owner`ALTER TABLE eventstore.events DISABLE TRIGGER USER`;
  await owner`DELETE FROM eventstore.events WHERE position > 1`;
  await owner.end();
  await other.append("a", newEvents(2));

  expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(LogDiverged);
  expect(await store.failed).toBeInstanceOf(LogDiverged);
  expect((await other.head()).position).toBe(3);
});

test("two stores of one log see each other's versions, keys and leases", async () => {
  const url = await newDatabase();
  await using first = await openPostgresStore({ url });
  await using second = await openPostgresStore({ url });
  expect(second.id).toBe(first.id);
  const appended = await first.append("a", newEvents(2), { key: "k" });
  expect(await refusalOf(second.append("a", [newEvent()], { expected: 0 }))).toBeInstanceOf(VersionConflict);
  expect(await second.append("a", [newEvent()], { key: "k" })).toEqual({ ...appended, repeated: true });
  expect(await second.append("a", [newEvent()], { expected: 2 })).toMatchObject({ first: 3 });
  await first.leases.acquire("run", { holder: "first", ttlMs: 60_000 });
  expect(await second.leases.acquire("run", { holder: "second", ttlMs: 60_000 })).toBeUndefined();
});

test("followers of concurrent stores see one order without gaps", async () => {
  const url = await newDatabase();
  const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore({ url })));
  const each = 150;
  const total = stores.length * each;
  const { signal } = new AbortController();
  const followed = stores.map((store) => take(store.subscribe({ from: 1, signal }), total));
  await Promise.all(
    stores.map(async (store, index) => {
      for (let count = 0; count < each; count += 1) await store.append(`s${index}`, [newEvent("T", { index, count })]);
    }),
  );
  const [one, ...others] = await Promise.all(followed);
  expect(one!.map(({ position }) => position)).toEqual(Array.from({ length: total }, (_, index) => index + 1));
  for (const other of others) expect(other).toEqual(one!);
  expect(await stores[0]!.verify()).toMatchObject({ ok: true, checked: total });
  for (const store of stores) await store[Symbol.asyncDispose]();
});
