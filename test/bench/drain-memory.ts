import { join } from "node:path";
import { atMostMore, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { backlogLog } from "./open-backlog-log.ts";
import { onCopyOf } from "./log-copy.ts";
import { largestMib } from "./resident-memory.ts";
import { startService } from "./start-service-process.ts";
import { networkSettings, startSinks } from "./start-network-sinks.ts";

/** Time in ms until a slow network answers. It is less than half of the timeout of an attempt (5 s). */
const SLOW_MS = 2_000;

/** Address of the dead networks. No server listens on this port. */
const DEAD = "http://127.0.0.1:9";

/**
 * Measures the maximum memory of the service with a large backlog for slow or dead networks, compared with a service
 * without a backlog.
 */
export const drainMemory: Bench = async (options) => {
  const clicks = options.quick ? 50_000 : 1_000_000;
  const watchMs = options.quick ? 2_000 : 10_000;
  const backlog = await backlogLog(options.directory, clicks);
  const empty = join(options.directory, "drain-memory-empty.sqlite");
  await using slow = await startSinks(options.directory, SLOW_MS);
  const peak = (log: string, url: string): Promise<number> => peakMib(log, url, watchMs);
  const sizes = await interleave(roundsOf(options), {
    idle: () => peak(empty, DEAD),
    slow: () => onCopyOf(backlog, (log) => peak(log, slow.url)),
    dead: () => onCopyOf(backlog, (log) => peak(log, DEAD)),
  });
  const row = (networks: string, ours: readonly number[]) => {
    const what = `drain-memory, ${clicks.toLocaleString("en")} clicks pending for networks that are ${networks}; none`;
    return compare(what, "MiB", ours, sizes.idle, atMostMore(150, "MiB"));
  };
  return [row("slow", sizes.slow), row("dead", sizes.dead)];
};

/**
 * Returns the maximum memory of a service, in MiB. It includes the start, in which the service folds the whole backlog.
 */
async function peakMib(log: string, networks: string, watchMs: number): Promise<number> {
  await using service = await startService(log, networkSettings(networks));
  await Bun.sleep(watchMs);
  return await largestMib(service.pid);
}
