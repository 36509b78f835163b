import { join } from "node:path";
import { outputOf, atMost, atMostMore, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { mixedLog } from "./open-mixed-log.ts";

const SIZES = [100_000, 1_000_000, 10_000_000] as const;
const SIZES_QUICK = [10_000, 100_000] as const;

interface Fold {
  readonly microsecondsPerEvent: number;
  readonly rssMib: number;
}

/** Compares the time and the memory of a replay as the log grows. */
export const growth: Bench = async (options) => {
  const sizes = options.quick ? SIZES_QUICK : SIZES;
  const files = new Map<string, string>();
  for (const events of sizes) files.set(events.toLocaleString("en"), await mixedLog(options.logs, events));
  const contenders = Object.fromEntries([...files].map(([size, file]) => [size, () => foldIn(file)]));
  const folds = await interleave(roundsOf(options), contenders);
  const [least = "", ...larger] = files.keys();
  const values = (size: string, value: (fold: Fold) => number) => (folds[size] ?? []).map(value);
  return larger.flatMap((size) => {
    const row = (what: string, unit: string, value: (fold: Fold) => number, bar: ReturnType<typeof atMost>) =>
      compare(`growth, ${what} at ${size}; at ${least}`, unit, values(size, value), values(least, value), bar);
    return [
      row("an event replayed", "µs", ({ microsecondsPerEvent }) => microsecondsPerEvent, atMost(1.2)),
      row("largest memory", "MiB", ({ rssMib }) => rssMib, atMostMore(64, "MiB")),
    ];
  });
};

/** Folds a log in a separate process, so that the measured maximum of memory is that of this fold alone. */
async function foldIn(file: string): Promise<Fold> {
  const program = join(import.meta.dirname, "measure-fold-time-and-memory.ts");
  return JSON.parse(await outputOf([process.execPath, program, file])) as Fold;
}
