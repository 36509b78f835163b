import { join } from "node:path";
import { openSqliteStore, type EventStore, type NewEvent } from "../src/index.ts";
import { atLeast, compare, interleave, perSecond, roundsOf, type Bench } from "./measure.ts";
import { openRawTable, type RawTable } from "./raw-inserts.ts";
import { makeEvents } from "./sample-events.ts";

const CALLERS = 64;
const EVENTS_PER_CALLER = 400;
const EVENTS_PER_CALLER_QUICK = 50;

/** Concurrent callers of one event each, every one of which waits until its event is durable. */
export const append64: Bench = async (options) => {
  const each = options.quick ? EVENTS_PER_CALLER_QUICK : EVENTS_PER_CALLER;
  const file = join(options.directory, "append-64.sqlite");
  await using store = await openSqliteStore({ file });
  using indexed = openRawTable(join(options.directory, "append-64-indexed.sqlite"), "indexed", file);
  using bare = openRawTable(join(options.directory, "append-64-bare.sqlite"), "bare", file);
  const raw = (table: RawTable): Promise<number> => {
    const insert = table.prepare(makeEvents(CALLERS * each), CALLERS, CALLERS);
    return perSecond(CALLERS * each, insert);
  };
  const rates = await interleave(roundsOf(options), {
    ours: () => appendConcurrently(store, CALLERS, each),
    indexed: () => raw(indexed),
    bare: () => raw(bare),
  });
  return [
    compare(
      "append-64; limit: raw inserts, same indexes, 64 a transaction",
      "/s",
      rates.ours,
      rates.indexed,
      atLeast(0.7),
    ),
    compare("append-64; limit: raw inserts, bare table", "/s", rates.ours, rates.bare, atLeast(0.7)),
  ];
};

/** Durable events a second; each caller has a stream of its own. */
export function appendConcurrently(store: EventStore, callers: number, each: number): Promise<number> {
  const events = Array.from({ length: callers }, () => makeEvents(each));
  return perSecond(callers * each, () => Promise.all(events.map((mine, caller) => appendEach(store, caller, mine))));
}

async function appendEach(store: EventStore, caller: number, events: readonly NewEvent[]): Promise<void> {
  for (const event of events) await store.append(`caller-${caller}`, [event]);
}
