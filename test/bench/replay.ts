import { openSqliteStore } from "eventstore-lite";
import { atLeast, compare, interleave, roundsOf, type Bench, openScan } from "eventstore-lite/bench";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { openExistingLog } from "../../src/commands/shared/open-log-and-record-reads.ts";
import { foldInWorker } from "../../src/service/fold-in-worker.ts";
import { rebuild } from "../../src/log/rebuild-projections.ts";
import { foldLog } from "../harness/fold-log.ts";
import { onCopyOf } from "./log-copy.ts";
import { costOf, describeCosts, ratesOf } from "./processor-cost.ts";
import { mixedLog } from "./open-mixed-log.ts";

/** Columns of an event that a fold reads in addition to its JSON. */
const COLUMNS = ["position", "version", "type", "time"];

/** Measures folding the log into every projection. Compares it with only scanning and parsing the same rows. */
export const replay: Bench = async (options) => {
  const events = options.quick ? 100_000 : 1_000_000;
  const file = await mixedLog(options.logs, events);
  await using store = await openSqliteStore<Event>({ file, codec });
  using data = openScan(file, COLUMNS, ["data"]);
  using both = openScan(file, COLUMNS, ["data", "meta"]);
  // A rebuild appends an event with its result. It works on a copy, because a longer log would affect the other
  // contenders.
  const costs = await onCopyOf(file, (copy) =>
    interleave(roundsOf(options), {
      ours: () => costOf(events, async () => expectEvents((await foldLog(store, PROJECTION_NAMES)).events, events)),
      two: () => costOf(events, () => rebuildOnTwoThreads(copy)),
      data: () => costOf(events, () => expectEvents(data.run(), events)),
      both: () => costOf(events, () => expectEvents(both.run(), events)),
    }),
  );
  const { ours, two, data: parsed, both: parsedBoth } = costs;
  options.note(describeCosts({ replay: ours, "on two threads": two, "scan + JSON.parse of data": parsed }));
  const [rate, limit] = [ratesOf(ours), ratesOf(parsed)];
  return [
    compare("replay, all projections; limit: scan + JSON.parse of data", "/s", rate, limit, atLeast(0.6)),
    compare("replay, all projections; limit: scan + JSON.parse of data and meta", "/s", rate, ratesOf(parsedBoth)),
    compare(
      "replay on two threads, states kept and compared; limit: the same",
      "/s",
      ratesOf(two),
      limit,
      atLeast(0.7),
    ),
  ];
};

/**
 * Rebuilds all projections on two threads, as the command does. The measured time includes the start of the second
 * thread and making the keys that encrypt what the threads exchange.
 */
async function rebuildOnTwoThreads(log: string): Promise<void> {
  const env = { DATABASE_URL: `sqlite:${log}` };
  await using store = await openExistingLog({ env });
  await rebuild(store, PROJECTION_NAMES, {
    restart: true,
    metadata: { caller: "bench" },
    signal: new AbortController().signal,
    onBegin() {},
    onProgress() {},
    foldInWorker: (order, signal) => foldInWorker({ env, ...order }, signal),
    workerPositionsMin: 0,
  });
}

function expectEvents(count: number, wanted: number): void {
  if (count !== wanted) throw new Error(`${count} events were read instead of ${wanted}`);
}
