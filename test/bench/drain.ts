import { join } from "node:path";
import { openSqliteStore } from "eventstore-lite";
import { outputOf } from "eventstore-lite/bench/child";
import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench/measure";
import { codec, type Event } from "../../events/catalog.ts";
import { CHANNELS } from "../../events/channel.ts";
import { backlogLog } from "./backlog-logs.ts";
import { onCopyOf } from "./copied.ts";
import { settled } from "./pending.ts";
import { startService } from "./server.ts";
import { networkSettings, startSinks, type Sinks } from "./sinks-process.ts";

/** Of a shorter backlog a good part of the time goes into compiling. */
const CLICKS = 100_000;
const CLICKS_QUICK = 3_000;

/** Clicks that are owed to three channels, until the outcome of each is durable, against posting them and no more. */
export const drain: Bench = async (options) => {
  const clicks = options.quick ? CLICKS_QUICK : CLICKS;
  const backlog = await backlogLog(options.directory, clicks);
  await using sinks = await startSinks(options.directory);
  const { ours, bare } = await interleave(roundsOf(options), {
    bare: () => postBare(backlog, sinks, clicks),
    ours: () => drainCopy(backlog, sinks, clicks),
  });
  options.note("each click is told by itself (the digest's delay is at its longest), but ads, which take batches");
  const what = "drain, clicks settled on three channels; limit: the same requests, nothing stored";
  return [compare(what, "/s", ours, bare, atLeast(0.5))];
};

/** In a process of its own, which makes its requests before its clock starts. */
async function postBare(backlog: string, sinks: Sinks, clicks: number): Promise<number> {
  await sinks.reset();
  const program = join(import.meta.dirname, "bare-loop.ts");
  const rate = Number(await outputOf([process.execPath, program, backlog, sinks.url]));
  await expectTold(sinks, clicks);
  return rate;
}

/** The service starts to deliver at once, so its first requests are held until the clock starts. */
function drainCopy(backlog: string, sinks: Sinks, clicks: number): Promise<number> {
  return onCopyOf(backlog, async (log) => {
    await sinks.reset();
    await sinks.hold();
    const seconds = await drainSeconds(log, sinks, clicks);
    await expectDelivered(log, clicks);
    return clicks / seconds;
  });
}

async function drainSeconds(log: string, sinks: Sinks, clicks: number): Promise<number> {
  await using service = await startService(log, networkSettings(sinks.url));
  const start = performance.now();
  await sinks.release();
  await expectTold(sinks, clicks);
  await settled(service);
  return (performance.now() - start) / 1000;
}

async function expectTold(sinks: Sinks, clicks: number): Promise<void> {
  const counts = await sinks.reached(clicks);
  const wrong = CHANNELS.filter((channel) => counts[channel] !== clicks);
  if (wrong.length > 0) throw new Error(`${wrong.join(", ")}: told of other than ${clicks} clicks`);
}

/** What ended in another way than delivered would have been less work. */
async function expectDelivered(log: string, clicks: number): Promise<void> {
  await using store = await openSqliteStore<Event>({ file: log, codec });
  let delivered = 0;
  for await (const batch of store.readFolded({ types: ["DispatchSucceeded"] })) delivered += batch.length;
  if (delivered !== clicks * CHANNELS.length) throw new Error(`${delivered} dispatches of ${clicks} clicks delivered`);
}
