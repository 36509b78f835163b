import { existsSync } from "node:fs";
import { join } from "node:path";
import { openSqliteStore } from "../src/index.ts";
import type { BenchOptions } from "./measure.ts";
import { makeEvents } from "./sample-events.ts";

const EVENTS = 1_000_000;
const EVENTS_QUICK = 100_000;
const STREAMS = 1_000;
const BATCH_EVENTS = 100;

/** A log of a million events in a thousand streams, made once a run. */
export async function longLog({ quick, directory }: BenchOptions): Promise<{ file: string; events: number }> {
  const events = quick ? EVENTS_QUICK : EVENTS;
  const file = join(directory, "long.sqlite");
  if (existsSync(file)) return { file, events };
  await using store = await openSqliteStore({ file });
  for (let start = 0; start < events; start += 10 * BATCH_EVENTS) {
    const batches = Array.from({ length: 10 }, (_, index) => (start / BATCH_EVENTS + index) % STREAMS);
    await Promise.all(batches.map((stream) => store.append(`cart-${stream}`, makeEvents(BATCH_EVENTS))));
  }
  return { file, events };
}
