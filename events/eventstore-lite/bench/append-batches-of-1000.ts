import { join } from "node:path";
import { openSqliteStore, type EventStore } from "../src/index.ts";
import { atLeast, interleave, roundsOf, type Bench } from "./compare-contenders.ts";
import { openRawTable, type RawTable } from "./raw-inserts.ts";
import { makeEvents } from "./sample-events.ts";
import { compareRates, compareThreads, type Work, workOf } from "./measure-append-cost.ts";

const BATCH_EVENTS = 1_000;
const CALLERS = 4;
const BATCHES_PER_CALLER = 10;
const BATCHES_PER_CALLER_QUICK = 2;

/**
 * Benchmark of appends of 1,000 events, each with an expected version: one caller that waits for each of its batches,
 * and four such callers at once.
 */
export const append1000: Bench = async (options) => {
  const batches = CALLERS * (options.quick ? BATCHES_PER_CALLER_QUICK : BATCHES_PER_CALLER);
  const file = join(options.directory, "append-1000.sqlite");
  await using store = await openSqliteStore({ file });
  using indexed = openRawTable(join(options.directory, "append-1000-indexed.sqlite"), "indexed", file);
  using bare = openRawTable(join(options.directory, "append-1000-bare.sqlite"), "bare", file);
  const one = createCaller(store, "one", BATCH_EVENTS);
  const four = Array.from({ length: CALLERS }, (_, index) => createCaller(store, `four-${index}`, BATCH_EVENTS));
  const raw = (table: RawTable): Promise<Work> => {
    const insert = table.prepare(makeEvents(batches * BATCH_EVENTS), 1, BATCH_EVENTS);
    return workOf(batches * BATCH_EVENTS, insert);
  };
  const work = await interleave(roundsOf(options), {
    one: () => workOf(batches * BATCH_EVENTS, one.prepare(batches)),
    four: () => {
      const appends = four.map((caller) => caller.prepare(batches / CALLERS));
      return workOf(batches * BATCH_EVENTS, () => Promise.all(appends.map((append) => append())));
    },
    indexed: () => raw(indexed),
    bare: () => raw(bare),
  });
  const bar = atLeast(0.6, 0.7);
  return [
    compareRates("append-1000, one caller; limit: raw inserts, same indexes", work.one, work.indexed, bar),
    compareRates("append-1000, one caller; limit: raw inserts, bare table", work.one, work.bare, bar),
    ...compareThreads("append-1000, one caller", work.one, work.indexed),
    compareRates("append-1000, four callers; limit: raw inserts, same indexes", work.four, work.indexed, bar),
    compareRates("append-1000, four callers; limit: raw inserts, bare table", work.four, work.bare, bar),
    ...compareThreads("append-1000, four callers", work.four, work.indexed),
  ];
};

/**
 * Creates a benchmark caller. It appends batch after batch to one stream, and expects the version that its previous
 * batch left.
 */
export function createCaller(store: EventStore, stream: string, batchEvents: number) {
  let version = 0;
  return {
    /** Makes the events of the caller's batches before time is measured, and returns the function that appends them. */
    prepare(batches: number): () => Promise<void> {
      const made = Array.from({ length: batches }, () => makeEvents(batchEvents));
      return async () => {
        for (const events of made) ({ version } = await store.append(stream, events, { expected: version }));
      };
    },
  };
}
