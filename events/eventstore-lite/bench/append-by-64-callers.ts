import { join } from "node:path";
import { openSqliteStore, type EventStore, type NewEvent } from "../src/index.ts";
import { atLeast, interleave, perSecond, roundsOf, type Bench } from "./compare-contenders.ts";
import { openRawTable, type RawTable } from "./raw-inserts.ts";
import { makeEvents } from "./sample-events.ts";
import { compareRates, compareThreads, type Work, workOf } from "./measure-append-cost.ts";

const CALLERS = 64;
const EVENTS_PER_CALLER = 400;
const EVENTS_PER_CALLER_QUICK = 50;

/** Benchmark of 64 concurrent callers. Each appends one event at a time, and waits until it is durable. */
export const append64: Bench = async (options) => {
  const each = options.quick ? EVENTS_PER_CALLER_QUICK : EVENTS_PER_CALLER;
  const file = join(options.directory, "append-64.sqlite");
  await using store = await openSqliteStore({ file });
  using indexed = openRawTable(join(options.directory, "append-64-indexed.sqlite"), "indexed", file);
  using bare = openRawTable(join(options.directory, "append-64-bare.sqlite"), "bare", file);
  const raw = (table: RawTable): Promise<Work> => {
    const insert = table.prepare(makeEvents(CALLERS * each), CALLERS, CALLERS);
    return workOf(CALLERS * each, insert);
  };
  const work = await interleave(roundsOf(options), {
    ours: () => workOf(CALLERS * each, prepareAppends(store, CALLERS, each)),
    indexed: () => raw(indexed),
    bare: () => raw(bare),
  });
  const bar = atLeast(0.5, 0.7);
  return [
    compareRates("append-64; limit: raw inserts, same indexes, 64 a transaction", work.ours, work.indexed, bar),
    compareRates("append-64; limit: raw inserts, bare table", work.ours, work.bare, bar),
    ...compareThreads("append-64", work.ours, work.indexed),
  ];
};

/** Lets concurrent callers append one event at a time, and returns how many events a second became durable. */
export function appendConcurrently(store: EventStore, callers: number, each: number): Promise<number> {
  return perSecond(callers * each, prepareAppends(store, callers, each));
}

/** Makes the events of concurrent callers with a stream each, and returns the function that appends them. */
function prepareAppends(store: EventStore, callers: number, each: number): () => Promise<unknown> {
  const events = Array.from({ length: callers }, () => makeEvents(each));
  return () => Promise.all(events.map((mine, caller) => appendEach(store, caller, mine)));
}

async function appendEach(store: EventStore, caller: number, events: readonly NewEvent[]): Promise<void> {
  for (const event of events) await store.append(`caller-${caller}`, [event]);
}
