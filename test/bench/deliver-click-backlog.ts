import { USUAL_CHANNELS } from "../harness/sample-click.ts";
import { join } from "node:path";
import { openSqliteStore } from "eventstore-lite";
import { outputOf, atLeast, atMost, compare, interleave, roundsOf, type Bar, type Bench } from "eventstore-lite/bench";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { foldLog } from "../harness/fold-log.ts";
import { backlogLog } from "./open-backlog-log.ts";
import { onCopyOf } from "./log-copy.ts";
import { deliveryTimeOf, describeTimes, timeOfEach, type DeliveryTime } from "./measure-delivery-processor-time.ts";
import { settled } from "./count-and-await-pending-dispatches.ts";
import { startService } from "./start-service-process.ts";
import { networkSettings, startSinks, type Sinks } from "./start-network-sinks.ts";

/** Number of clicks in the backlog. With fewer, much of the time would be spent on compiling. */
const CLICKS = 100_000;
const CLICKS_QUICK = 3_000;

/**
 * Maximum number of log positions that a click takes on average: one for the click, and half of one for its outcomes on
 * three channels. Requests that complete together share one event for their outcomes.
 */
const POSITIONS_MAX = 1.5;

interface Drained {
  readonly perSecond: number;
  /** Positions of the log per click, including the click's own. */
  readonly positions: number;
  /** Processor time of the delivering process per click. */
  readonly time: DeliveryTime;
}

/**
 * Measures the delivery of clicks that are pending on three channels until each outcome is durable. Compares it with a
 * program that only posts the same requests.
 */
export const drain: Bench = async (options) => {
  const clicks = options.quick ? CLICKS_QUICK : CLICKS;
  const backlog = await backlogLog(options.directory, clicks);
  await using sinks = await startSinks(options.directory);
  const { ours, bare } = await interleave(roundsOf(options), {
    bare: () => postBare(backlog, sinks, clicks),
    ours: () => drainCopy(backlog, sinks, clicks),
  });
  options.note("each click is sent by itself (the digest's delay is at its longest), but ads, which take batches");
  const timesOf = (all: readonly Drained[]): string => describeTimes(all.map(({ time }) => time));
  options.note(`processor time of a click in µs: ${timesOf(ours)}; of the limit: ${timesOf(bare)}`);
  const row = (what: string, unit: string, value: (drained: Drained) => number, bar: Bar) =>
    compare(`drain, ${what}`, unit, ours.map(value), bare.map(value), bar);
  const what = "clicks settled on three channels; limit: the same requests, nothing stored";
  return [
    row(what, "/s", ({ perSecond }) => perSecond, atLeast(0.42, 0.5)),
    row("positions a click; limit: its own", "positions", ({ positions }) => positions, atMost(POSITIONS_MAX)),
  ];
};

/**
 * Posts the requests of the backlog and stores nothing. Runs in a separate process, which creates the requests before
 * its clock starts.
 */
async function postBare(backlog: string, sinks: Sinks, clicks: number): Promise<Drained> {
  await sinks.reset();
  const program = join(import.meta.dirname, "deliver-backlog-without-storage.ts");
  const printed = await outputOf([process.execPath, program, backlog, sinks.url]);
  await expectArrived(sinks, clicks);
  return { ...(JSON.parse(printed) as Omit<Drained, "positions">), positions: 1 };
}

/**
 * Measures how fast a service delivers a copy of the backlog. A started service begins at once, so the sinks hold its
 * first requests back until the measurement begins.
 */
function drainCopy(backlog: string, sinks: Sinks, clicks: number): Promise<Drained> {
  return onCopyOf(backlog, async (log) => {
    await sinks.reset();
    await sinks.hold();
    const drained = await drainService(log, sinks, clicks);
    return { ...drained, positions: (await expectDelivered(log, clicks)) / clicks };
  });
}

async function drainService(log: string, sinks: Sinks, clicks: number): Promise<Omit<Drained, "positions">> {
  await using service = await startService(log, networkSettings(sinks.url));
  const before = deliveryTimeOf(service.pid);
  const start = performance.now();
  await sinks.release();
  await expectArrived(sinks, clicks);
  await settled(service);
  const perSecond = clicks / ((performance.now() - start) / 1000);
  return { perSecond, time: timeOfEach(before, deliveryTimeOf(service.pid), clicks) };
}

async function expectArrived(sinks: Sinks, clicks: number): Promise<void> {
  const counts = await sinks.reached(clicks);
  const wrong = USUAL_CHANNELS.filter((channel) => counts[channel] !== clicks);
  if (wrong.length > 0) throw new Error(`${wrong.join(", ")}: got other than ${clicks} clicks`);
}

/**
 * Throws unless every dispatch in the log was delivered: other outcomes take less work. Returns the position of the
 * log's end.
 */
async function expectDelivered(log: string, clicks: number): Promise<number> {
  await using store = await openSqliteStore<Event>({ file: log, codec });
  const states = (await foldLog(store, ["deliveries"])).states.deliveries;
  const delivered = USUAL_CHANNELS.reduce((sum, name) => sum + states[name].dispatched, 0);
  if (delivered !== clicks * USUAL_CHANNELS.length)
    throw new Error(`${delivered} dispatches of ${clicks} clicks delivered`);
  return (await store.head()).position;
}
