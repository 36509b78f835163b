import { openSqliteStore } from "eventstore-lite";
import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { foldLog } from "../harness/fold-log.ts";
import { costOf, describeCosts, ratesOf } from "./processor-cost.ts";
import { mixedLog } from "./open-mixed-log.ts";

/** Measures the events a second of a replay: of one small projection, and of all projections. */
export const replayStats: Bench = async (options) => {
  const events = options.quick ? 100_000 : 1_000_000;
  await using store = await openSqliteStore<Event>({ file: await mixedLog(options.logs, events), codec });
  const costs = await interleave(roundsOf(options), {
    stats: () => costOf(events, () => foldLog(store, ["stats"])),
    all: () => costOf(events, () => foldLog(store, PROJECTION_NAMES)),
  });
  const [stats, all] = [ratesOf(costs.stats), ratesOf(costs.all)];
  options.note(describeCosts({ stats: costs.stats, all: costs.all }));
  return [compare("replay-stats, stats alone; against replay of all", "/s", stats, all, atLeast(5))];
};
