import { join } from "node:path";
import { outputOf, atMost, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { onCopyOf } from "./log-copy.ts";
import { mixedLog } from "./open-mixed-log.ts";
import { postSteadily } from "./post-clicks.ts";
import { startService, type Server } from "./start-service-process.ts";

const SMALL_EVENTS = 1_000;
const READS_PER_SECOND = 500;
const READS = 5_000;
const READS_QUICK = 500;
/** Number of first reads that do not count: meanwhile code is compiled, and the other client opens its connections. */
const READS_UNCOUNTED = 500;
/** Duration in seconds of a load before the reads, which finds the maximum rate of the intake. */
const PROBE_SECONDS = 3;
/**
 * Minimum share of the intended rate of requests that a run must reach; otherwise the machine was too busy for a
 * measurement.
 */
const RATE_SHARE_MIN = 0.9;

interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Measures how long `GET /social/stats` takes while clicks arrive at half of the maximum rate. */
export const statsRead: Bench = async (options) => {
  const events = options.quick ? 100_000 : 10_000_000;
  const reads = options.quick ? READS_QUICK : READS;
  const small = await mixedLog(options.logs, SMALL_EVENTS);
  const large = await mixedLog(options.logs, events);
  const rate = Math.round((await onCopy(small, maximumOf)) / 2);
  let reached = Infinity;
  const measure = async (service: Server): Promise<Latency> => {
    const { latency, share } = await readUnderIntake(service, reads, rate);
    reached = Math.min(reached, share);
    return latency;
  };
  const rounds = await onCopyOf(large, (largeCopy) =>
    interleave(roundsOf(options), {
      // Each round gets a new copy of the small log, because the clicks of a round would enlarge it noticeably.
      small: () => onCopy(small, measure),
      large: async () => {
        await using service = await startService(largeCopy);
        return await measure(service);
      },
    }),
  );
  options.note(
    `the intake ran at ${rate.toLocaleString("en")} clicks a second, half of what http-load-client.ts got from it`,
  );
  if (reached < RATE_SHARE_MIN) options.note(`but in one round only ${Math.round(reached * 100)} % of that came`);
  const row = (what: string, value: (latency: Latency) => number, bar?: ReturnType<typeof atMost>) =>
    compare(what, "µs", rounds.large.map(value), rounds.small.map(value), bar);
  const what = `with ${events.toLocaleString("en")} events; with ${SMALL_EVENTS.toLocaleString("en")}`;
  return [
    row(`stats-read, p50 ${what}`, ({ p50Ms }) => p50Ms * 1000),
    row(`stats-read, p99 ${what}`, ({ p99Ms }) => p99Ms * 1000, atMost(1.2)),
  ];
};

async function maximumOf(service: Server): Promise<number> {
  return (await postSteadily(service.url, PROBE_SECONDS, 0)).perSecond;
}

async function readUnderIntake(
  service: Server,
  reads: number,
  rate: number,
): Promise<{ latency: Latency; share: number }> {
  // Both clients start at the same time. The clicks last a second longer than the reads, so that they arrive during all
  // reads.
  const seconds = (READS_UNCOUNTED + reads) / READS_PER_SECOND + 1;
  const [load, latency] = await Promise.all([
    postSteadily(service.url, seconds, rate),
    readSteadily(`${service.url}/social/stats`, reads),
  ]);
  return { latency, share: load.perSecond / rate };
}

async function readSteadily(url: string, reads: number): Promise<Latency> {
  const args = [url, READS_PER_SECOND, READS_UNCOUNTED, reads].map(String);
  const program = join(import.meta.dirname, "steady-reads.ts");
  return JSON.parse(await outputOf([process.execPath, program, ...args])) as Latency;
}

/**
 * Copies `log`, starts a service on the copy and calls `work` with the service. No process may have `log` open
 * meanwhile.
 */
function onCopy<Result>(log: string, work: (service: Server) => Promise<Result>): Promise<Result> {
  return onCopyOf(log, async (copy) => {
    await using service = await startService(copy);
    return await work(service);
  });
}
