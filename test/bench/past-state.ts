import { openSqliteStore } from "eventstore-lite";
import { atMost, compare, interleave, roundsOf, type Bench, openScan } from "eventstore-lite/bench";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { foldTo } from "../../src/projector/fold-to-moment.ts";
import { listPast } from "../../src/projector/past-snapshots.ts";
import { onCopyOf } from "./log-copy.ts";
import { mixedLog } from "./open-mixed-log.ts";

/** Maximum acceptable time in ms to compute one past state. */
const WANTED_MS = 1_000;

/** Columns of an event that a fold reads in addition to its JSON. */
const COLUMNS = ["position", "version", "type", "time"];

/**
 * Number of entries in the list of positions from one round's position to the next round's. It has no common divisor
 * with the length of the list, so the rounds visit the whole log.
 */
const STEP = 7;

/**
 * Measures how long it takes to compute all states as of past positions in a long log. Each position is as far from a
 * snapshot as possible.
 */
export const moment: Bench = async (options) => {
  const events = options.quick ? 100_000 : 10_000_000;
  return onCopyOf(await mixedLog(options.logs, events), async (file) => {
    await using store = await openSqliteStore<Event>({ file, codec });
    const first = await msOf(() => foldTo(store, PROJECTION_NAMES, { to: events, keepSince: events }));
    using scan = openScan(file, COLUMNS, ["data"]);
    const scanned = await msOf(() => scan.run());
    const entries = await store.snapshots.list("past/");
    const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
    options.note(`${entries.length} snapshots of the past hold ${(bytes / 2 ** 20).toFixed(0)} MiB`);
    const kept = (await listPast(store, "clicks")).map(({ position }) => position);
    // The last position before a snapshot is the farthest from the snapshot before, where the computation begins.
    const moments = kept.map((position, at) => ({ from: (kept[at - 1] ?? 0) + 1, to: position - 1 }));
    const round = { ours: 0, limit: 0 };
    const next = (who: keyof typeof round) => moments[(round[who]++ * STEP) % moments.length]!;
    const { ours, limit } = await interleave(roundsOf(options), {
      ours: () => msOf(() => foldTo(store, PROJECTION_NAMES, { to: next("ours").to })),
      limit: () => msOf(() => scan.run(next("limit"))),
    });
    const what = `all as of a moment, in a log of ${events.toLocaleString("en")}`;
    const wanted = ours.map(() => WANTED_MS);
    return [
      compare(`${what}; limit: scan + JSON.parse of the events since its snapshot`, "ms", ours, limit),
      compare(`${what}; limit: a second`, "ms", ours, wanted, atMost(1)),
      compare(
        "the first moment, at the end and with no snapshot yet (once); scan of the log",
        "ms",
        [first],
        [scanned],
      ),
    ];
  });
};

async function msOf(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
