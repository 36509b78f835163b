import { openSqliteStore } from "eventstore-lite";
import { atLeast, compare, interleave, perSecond, roundsOf, type Bench } from "eventstore-lite/bench/measure";
import { openScan } from "eventstore-lite/bench/scan";
import { codec, type Event } from "../../events/catalog.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { foldLog } from "../harness/fold-log.ts";
import { mixedLog } from "./mixed-logs.ts";

/** What a fold needs of each event, beside the JSON. */
const COLUMNS = ["position", "version", "type", "time"];

/** Folding the log into every projection against scanning the same rows, parsing them, and doing nothing. */
export const replay: Bench = async (options) => {
  const events = options.quick ? 100_000 : 1_000_000;
  const file = await mixedLog(options.directory, events);
  await using store = await openSqliteStore<Event>({ file, codec });
  using data = openScan(file, COLUMNS, ["data"]);
  using both = openScan(file, COLUMNS, ["data", "meta"]);
  const rates = await interleave(roundsOf(options), {
    ours: () => perSecond(events, async () => expectEvents((await foldLog(store, PROJECTION_NAMES)).events, events)),
    data: () => perSecond(events, () => expectEvents(data.run(), events)),
    both: () => perSecond(events, () => expectEvents(both.run(), events)),
  });
  return [
    compare("replay, all projections; limit: scan + JSON.parse of data", "/s", rates.ours, rates.data, atLeast(0.6)),
    compare("replay, all projections; limit: scan + JSON.parse of data and meta", "/s", rates.ours, rates.both),
  ];
};

function expectEvents(count: number, wanted: number): void {
  if (count !== wanted) throw new Error(`${count} events were read instead of ${wanted}`);
}
