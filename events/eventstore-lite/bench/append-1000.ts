import { join } from "node:path";
import { openSqliteStore, type EventStore } from "../src/index.ts";
import { atLeast, compare, interleave, perSecond, roundsOf, type Bench } from "./measure.ts";
import { openRawTable, type RawTable } from "./raw-inserts.ts";
import { makeEvents } from "./sample-events.ts";

const BATCH_EVENTS = 1_000;
const CALLERS = 4;
const BATCHES_PER_CALLER = 10;
const BATCHES_PER_CALLER_QUICK = 2;

/** Batches with expected versions: one caller that waits for each of its batches, and four of them at once. */
export const append1000: Bench = async (options) => {
  const batches = CALLERS * (options.quick ? BATCHES_PER_CALLER_QUICK : BATCHES_PER_CALLER);
  const file = join(options.directory, "append-1000.sqlite");
  await using store = await openSqliteStore({ file });
  using indexed = openRawTable(join(options.directory, "append-1000-indexed.sqlite"), "indexed", file);
  using bare = openRawTable(join(options.directory, "append-1000-bare.sqlite"), "bare", file);
  const one = createCaller(store, "one", BATCH_EVENTS);
  const four = Array.from({ length: CALLERS }, (_, index) => createCaller(store, `four-${index}`, BATCH_EVENTS));
  const raw = (table: RawTable): Promise<number> => {
    const insert = table.prepare(makeEvents(batches * BATCH_EVENTS), 1, BATCH_EVENTS);
    return perSecond(batches * BATCH_EVENTS, insert);
  };
  const rates = await interleave(roundsOf(options), {
    one: () => perSecond(batches * BATCH_EVENTS, one.prepare(batches)),
    four: () => {
      const work = four.map((caller) => caller.prepare(batches / CALLERS));
      return perSecond(batches * BATCH_EVENTS, () => Promise.all(work.map((append) => append())));
    },
    indexed: () => raw(indexed),
    bare: () => raw(bare),
  });
  const bar = atLeast(0.7);
  return [
    compare("append-1000, one caller; limit: raw inserts, same indexes", "/s", rates.one, rates.indexed, bar),
    compare("append-1000, one caller; limit: raw inserts, bare table", "/s", rates.one, rates.bare, bar),
    compare("append-1000, four callers; limit: raw inserts, same indexes", "/s", rates.four, rates.indexed, bar),
    compare("append-1000, four callers; limit: raw inserts, bare table", "/s", rates.four, rates.bare, bar),
  ];
};

/** Appends batch after batch to one stream, each at the version that the one before it left. */
export function createCaller(store: EventStore, stream: string, batchEvents: number) {
  let version = 0;
  return {
    /** Makes the events, and answers what appends them. */
    prepare(batches: number): () => Promise<void> {
      const made = Array.from({ length: batches }, () => makeEvents(batchEvents));
      return async () => {
        for (const events of made) ({ version } = await store.append(stream, events, { expected: version }));
      };
    },
  };
}
