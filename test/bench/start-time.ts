import { join } from "node:path";
import { atMost, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { onCopyOf } from "./log-copy.ts";
import { mixedLog } from "./open-mixed-log.ts";
import { startService } from "./start-service-process.ts";

/** Measures the time from the start of the process to the first answer, with a long log and with an empty one. */
export const start: Bench = async (options) => {
  const events = options.quick ? 100_000 : 10_000_000;
  const long = await mixedLog(options.logs, events);
  const empty = join(options.directory, "start-empty.sqlite");
  const firstEmpty = await startMs(empty);
  const { firstLong, ours, limit } = await onCopyOf(long, async (copy) => ({
    firstLong: await startMs(copy),
    ...(await interleave(roundsOf(options), {
      ours: () => startMs(copy),
      limit: () => startMs(empty),
    })),
  }));
  const size = `${events.toLocaleString("en")} events`;
  return [
    compare(`start with ${size}; limit: an empty log`, "ms", ours, limit, atMost(2)),
    compare(`the first start with ${size}, no snapshot yet (once); an empty log`, "ms", [firstLong], [firstEmpty]),
  ];
};

/**
 * Measures one start of the service, in ms. Then stops the service in an orderly way, so that the next start finds its
 * snapshots.
 */
async function startMs(log: string): Promise<number> {
  const start = performance.now();
  await using service = await startService(log);
  const answer = await fetch(`${service.url}/api/health`);
  await answer.arrayBuffer();
  const took = performance.now() - start;
  if (answer.status !== 200) throw new Error(`the service answered ${answer.status}`);
  return took;
}
