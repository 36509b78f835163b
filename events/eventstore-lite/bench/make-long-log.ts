import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSqliteStore } from "../src/index.ts";
import type { BenchOptions } from "./compare-contenders.ts";
import { makeEvents } from "./sample-events.ts";

const EVENTS = 1_000_000;
const EVENTS_QUICK = 100_000;
const STREAMS = 1_000;
const BATCH_EVENTS = 100;

/**
 * Returns a log of a million events in a thousand streams, for reading only. It is made once for each run of the
 * benchmarks, or read from the folder given by `--logs`.
 */
export async function longLog({ quick, logs }: BenchOptions): Promise<{ file: string; events: number }> {
  const events = quick ? EVENTS_QUICK : EVENTS;
  const file = join(logs, `long-${events}.sqlite`);
  if (existsSync(file)) return { file, events };
  const partial = `${file}.partial`;
  rmSync(partial, { force: true });
  await write(partial, events);
  renameSync(partial, file);
  return { file, events };
}

async function write(file: string, events: number): Promise<void> {
  await using store = await openSqliteStore({ file });
  for (let start = 0; start < events; start += 10 * BATCH_EVENTS) {
    const batches = Array.from({ length: 10 }, (_, index) => (start / BATCH_EVENTS + index) % STREAMS);
    await Promise.all(batches.map((stream) => store.append(`cart-${stream}`, makeEvents(BATCH_EVENTS))));
  }
}
