import { openSqliteStore } from "eventstore-lite";
import { atLeast, compare, interleave, perSecond, roundsOf, type Bench } from "eventstore-lite/bench/measure";
import { openScan } from "eventstore-lite/bench/scan";
import { codec, type Event } from "../../events/catalog.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { foldApart } from "../../src/commands/replay/fold-apart.ts";
import { rebuild } from "../../src/commands/replay/rebuild.ts";
import { foldLog } from "../harness/fold-log.ts";
import { onCopyOf } from "./copied.ts";
import { mixedLog } from "./mixed-logs.ts";

/** What a fold needs of each event, beside the JSON. */
const COLUMNS = ["position", "version", "type", "time"];

/** Folding the log into every projection against scanning the same rows, parsing them, and doing nothing. */
export const replay: Bench = async (options) => {
  const events = options.quick ? 100_000 : 1_000_000;
  const file = await mixedLog(options.logs, events);
  await using store = await openSqliteStore<Event>({ file, codec });
  using data = openScan(file, COLUMNS, ["data"]);
  using both = openScan(file, COLUMNS, ["data", "meta"]);
  // What a rebuild comes to is recorded, so that the log of the others would grow.
  const rates = await onCopyOf(file, (copy) =>
    interleave(roundsOf(options), {
      ours: () => perSecond(events, async () => expectEvents((await foldLog(store, PROJECTION_NAMES)).events, events)),
      two: () => perSecond(events, () => rebuildOnTwoThreads(copy)),
      data: () => perSecond(events, () => expectEvents(data.run(), events)),
      both: () => perSecond(events, () => expectEvents(both.run(), events)),
    }),
  );
  return [
    compare("replay, all projections; limit: scan + JSON.parse of data", "/s", rates.ours, rates.data, atLeast(0.6)),
    compare("replay, all projections; limit: scan + JSON.parse of data and meta", "/s", rates.ours, rates.both),
    compare(
      "replay on two threads, states kept and compared; limit: the same",
      "/s",
      rates.two,
      rates.data,
      atLeast(0.7),
    ),
  ];
};

/** As the command does it, with the start of the thread. */
async function rebuildOnTwoThreads(log: string): Promise<void> {
  await using store = await openSqliteStore<Event>({ file: log, codec });
  const env = { DATABASE_URL: `sqlite:${log}` };
  await rebuild(store, PROJECTION_NAMES, {
    restart: true,
    signal: new AbortController().signal,
    onBegin() {},
    onProgress() {},
    foldApart: (order, signal) => foldApart({ env, ...order }, signal),
    apartPositionsMin: 0,
  });
}

function expectEvents(count: number, wanted: number): void {
  if (count !== wanted) throw new Error(`${count} events were read instead of ${wanted}`);
}
