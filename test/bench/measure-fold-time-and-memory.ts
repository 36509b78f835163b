/**
 * Folds a log into all projections and prints the time per event and the largest memory of the process. Argument: FILE.
 */
import { readFileSync } from "node:fs";
import { openSqliteStore } from "eventstore-lite";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { foldLog } from "../harness/fold-log.ts";

/**
 * Number of events folded before the measurement; otherwise a short log would be folded before the code is compiled.
 */
const WARM_UP_EVENTS = 10_000;
const WARM_UPS = 5;

const [file = ""] = process.argv.slice(2);
await using store = await openSqliteStore<Event>({ file, codec });
for (let count = 0; count < WARM_UPS; count++) await foldLog(store, PROJECTION_NAMES, { to: WARM_UP_EVENTS });
Bun.gc(true);

const start = performance.now();
const { position } = await foldLog(store, PROJECTION_NAMES);
const tookMs = performance.now() - start;
console.log(JSON.stringify({ microsecondsPerEvent: (tookMs * 1000) / position, rssMib: largestKib() / 1024 }));

/**
 * Returns the maximum memory of this process, in KiB. On Linux it is read from /proc, because getrusage would include
 * the parent process.
 */
function largestKib(): number {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
}
