import { setTimeout as pause } from "node:timers/promises";
import postgres from "postgres";
import type { EventStore } from "../src/index.ts";
import { openPostgresStore } from "../src/postgres.ts";
import { startPostgres } from "../src/testing/postgres-server.ts";
import { atMost, compare, type Bench } from "./compare-contenders.ts";
import { makeEvents } from "./sample-events.ts";

/**
 * Duration of a run in minutes; a dump of a large log takes an hour. The number of old rows that the server cannot
 * remove during the dump grows with time, so only the last quarter of the rounds counts.
 */
const MINUTES = Number(process.env["BENCH_DUMP_MINUTES"] ?? 1);
const MINUTES_QUICK = 0.1;

const EVENTS = 64;
const BATCHES_PER_ROUND = 20;
const PAUSE_MS = 200;

/**
 * Benchmark of appends while a dump keeps a snapshot of the database open, so that the server cannot remove old row
 * versions. It alternates with the same appends to a second database without a dump, whose speed is the limit.
 */
export const dumpPostgres: Bench = async ({ quick, note }) => {
  const minutes = quick ? MINUTES_QUICK : MINUTES;
  await using server = await startPostgres({ durable: true });
  const dumped = await server.newDatabase();
  await using beside = await openPostgresStore({ url: dumped, schema: SCHEMA });
  await using alone = await openPostgresStore({ url: await server.newDatabase(), schema: SCHEMA });
  const dump = postgres(dumped, { max: 1, onnotice: () => {} });
  const p50s: { ours: number[]; limit: number[] } = { ours: [], limit: [] };
  await dump.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", async (sql) => {
    await sql`SELECT count(*) FROM ${sql(SCHEMA)}.events`;
    const until = performance.now() + minutes * 60_000;
    for (let round = 0; performance.now() < until; round++) {
      const turn = async (): Promise<unknown> => p50s.ours.push(await p50(beside));
      const other = async (): Promise<unknown> => p50s.limit.push(await p50(alone));
      for (const append of round % 2 === 0 ? [turn, other] : [other, turn]) await append();
      await pause(PAUSE_MS);
    }
  });
  // The driver closes a connection that is half an hour old, and a close that waits would then never return, so this
  // one does not wait.
  await dump.end({ timeout: 0 });
  const last = Math.ceil(p50s.ours.length / 4);
  note(`${p50s.ours.length} rounds in ${minutes} min (BENCH_DUMP_MINUTES), of which the last ${last} count`);
  const what = "batch of 64 on PostgreSQL, p50 beside a dump; limit: without";
  return [compare(what, "µs", p50s.ours.slice(-last), p50s.limit.slice(-last), atMost(1.2))];
};

const SCHEMA = "eventstore";

/** Returns the median duration of consecutive batches, in microseconds. */
async function p50(store: EventStore): Promise<number> {
  const took: number[] = [];
  for (let batch = 0; batch < BATCHES_PER_ROUND; batch++) {
    const events = makeEvents(EVENTS);
    const startedAt = performance.now();
    await store.append("dumped", events);
    took.push((performance.now() - startedAt) * 1000);
  }
  return took.toSorted((a, b) => a - b)[BATCHES_PER_ROUND / 2]!;
}
