import { afterAll, beforeAll, expect, test } from "bun:test";
import { setTimeout as delay } from "node:timers/promises";
import { StoreClosed, type EventStore } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { StoreUnavailable } from "eventstore-lite/testing";
import postgres from "postgres";
import { newEvents, refusalOf } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { newDatabase } from "../../src/testing/postgres-server.ts";
import { startProxy, type Proxy } from "../../src/testing/faulty-postgres-proxy.ts";

/** Number of events in the log: more than are verified in the thread that serves requests. */
const EVENTS = 6_000;

let url: string;
let proxy: Proxy;
let store: EventStore;
beforeAll(async () => {
  url = await newDatabase();
  proxy = await startProxy(url);
  store = await openPostgresStore({ url: proxy.url });
  for (let at = 0; at < EVENTS; at += 1_000) await store.append("a", newEvents(1_000));
});
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
});

test("a long log is verified over a separate connection", async () => {
  const rowsTo = new Map<string, number>();
  proxy.decide(({ from, type, application }) => {
    if (from === "server" && type === "D") rowsTo.set(application, (rowsTo.get(application) ?? 0) + 1);
    return "pass";
  });
  const progress: number[] = [];
  const verification = await store.verify({ onProgress: (checked) => progress.push(checked) });
  expect(verification).toEqual({ ok: true, checked: EVENTS, head: await store.head() });
  expect(progress.at(-1)).toBe(EVENTS);
  expect(rowsTo.get("eventstore-lite verifier")).toBeGreaterThanOrEqual(EVENTS);
  expect(rowsTo.get("eventstore-lite reader")).toBeLessThan(10);
});

test("an altered event in a long log is found with its position", async () => {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql.unsafe(`ALTER TABLE eventstore.events DISABLE TRIGGER USER;
    CREATE TABLE before AS SELECT * FROM eventstore.events WHERE position = 5555;
    UPDATE eventstore.events SET data = '{}' WHERE position = 5555`);
  const reason = "the hash does not follow from the event and its predecessor";
  const found = await store.verify({ from: 2 });
  await sql.unsafe(`UPDATE eventstore.events e SET data = before.data FROM before WHERE e.position = 5555`);
  await sql.end();
  expect(found).toMatchObject({ ok: false, checked: 5_553, fault: { position: 5_555, reason } });
  expect(await store.verify()).toMatchObject({ ok: true });
});

test("a verification ends as unavailable if its connection is cut", async () => {
  let rows = 0;
  proxy.decide(({ from, type, application }) => {
    if (application !== "eventstore-lite verifier" || from !== "server" || type !== "D") return "pass";
    return (rows += 1) > 2_000 ? "cut" : "pass";
  });
  expect(await refusalOf(store.verify())).toBeInstanceOf(StoreUnavailable);
  proxy.decide(() => "pass");
  expect(await store.verify()).toMatchObject({ ok: true });
});

test("closing a store ends its verification as closed", async () => {
  const asked = Promise.withResolvers<void>();
  const closed = await openPostgresStore({ url: proxy.url });
  proxy.decide(({ type, application }) => {
    if (application !== "eventstore-lite verifier" || type !== "D") return "pass";
    asked.resolve();
    return "lose";
  });
  const refused = refusalOf(closed.verify());
  await asked.promise;
  await closed[Symbol.asyncDispose]();
  expect(await refused).toBeInstanceOf(StoreClosed);
  proxy.decide(() => "pass");
});

test("a verification waits for a query slower than a caller's time-out", async () => {
  const other = postgres(url, { max: 2, onnotice: () => {} });
  const released = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = other.begin(async (sql) => {
    await sql`LOCK eventstore.archived_streams`;
    locked.resolve();
    await released.promise;
  });
  await locked.promise;
  const verified = store.verify({ from: 1, to: EVENTS });
  const refused = await refusalOf(store.streamHead("none"));
  const late = () => other`SELECT FROM pg_stat_activity WHERE application_name = 'eventstore-lite verifier'
    AND wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '4 seconds'`;
  while ((await late()).length === 0) await delay(20);
  released.resolve();
  await holding;
  await other.end();
  expect(refused).toMatchObject({ code: "overloaded", message: "the server was too slow: try again later" });
  expect(await verified).toMatchObject({ ok: true });
});
