import { expect, test } from "bun:test";
import { beginPostgresEpoch, openPostgresStore } from "eventstore-lite/postgres";
import { createSegmentFolder } from "eventstore-lite/segments";
import { type LogPlace, newLogPlace } from "eventstore-lite/testing";
import postgres from "postgres";
import { newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();

/** Columns whose values differ between two new logs. */
const DIFFERING = new Set(["id", "store", "epoch", "place", "applied_at"]);

/** Returns the rows of all tables of a log, and the last values of its sequences. */
async function contentOf({ url, schema }: LogPlace): Promise<Record<string, unknown>> {
  const client = postgres(url, { max: 1, fetch_types: false });
  const content: Record<string, unknown> = {};
  for (const { name } of await client`SELECT tablename AS name FROM pg_tables WHERE schemaname = ${schema}`) {
    const rows = await client`SELECT * FROM ${client(schema)}.${client(name)}`;
    content[name] = rows.map((row) => Object.entries(row).filter(([column]) => !DIFFERING.has(column)));
  }
  content["sequences"] = await client`
    SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = ${schema}`.values();
  await client.end();
  return content;
}

const open = (place: LogPlace) =>
  openPostgresStore({ ...place, segments: createSegmentFolder(`${newLogPath()}.segments`), writerThread: false });

/** Uses a log so that all of its tables have rows. Returns its id. */
async function use(place: LogPlace): Promise<string> {
  await using store = await open(place);
  for (const key of ["one", "two", "three"]) await store.append("a", newEvents(3), { key });
  await store.leases.acquire("lease", { holder: "us", ttlMs: 60_000 });
  await store.snapshots.save("state", { version: 1, position: 1, state: "{}" });
  await take(store.archive({ to: 6 }));
  await beginPostgresEpoch(place, "operator");
  return store.cursor(0).store;
}

test("a place that a test has left has a log like a new one, and takes the next log", async () => {
  const fresh = await newLogPlace();
  const left = await newLogPlace();
  {
    await using _ = await open(fresh);
  }
  const ids = [await use(left)];
  const used = await contentOf(left);
  const empty = Object.entries(used).filter(([, rows]) => (rows as readonly unknown[]).length === 0);
  expect(empty).toEqual([]);
  left[Symbol.dispose]();
  using again = await newLogPlace();
  expect(again.schema).toBe(left.schema);
  for (const place of [fresh, again]) {
    await using store = await open(place);
    ids.push(store.cursor(0).store);
    expect(await store.head()).toMatchObject({ position: 0 });
  }
  expect(await contentOf(again)).toEqual(await contentOf(fresh));
  expect(new Set(ids).size).toBe(3);
  await use(again);
  fresh[Symbol.dispose]();
});

test("an append to the log that was in a place before is refused", async () => {
  const left = await newLogPlace();
  await using former = await open(left);
  left[Symbol.dispose]();
  using again = await newLogPlace();
  expect(await refusalOf(former.append("a", newEvents(1)))).toMatchObject({ name: "LogDiverged" });
  await using store = await open(again);
  expect(await take(store.read())).toEqual([]);
});
