import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { atLeast, atMost, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench/measure";
import { STAMPED_CLICK } from "./click.ts";
import { largestMib } from "./memory.ts";
import { installOutbox } from "./outbox-install.ts";
import { settled } from "./pending.ts";
import { postSome, postSteadily } from "./post-clicks.ts";
import { startServer, startService, type Server } from "./server.ts";
import { networkSettings, startSinks, type Sinks } from "./sinks-process.ts";

/** In fewer neither of the two has come to its pace: both are compiled while they run. */
const CLICKS = 20_000;
const CLICKS_QUICK = 1_000;

const STEADY_SECONDS = 5;
const STEADY_SECONDS_QUICK = 2;

interface Figures {
  /** Clicks delivered to all three channels, when they come as fast as they are taken. */
  readonly perSecond: number;
  /** From the sending of a click to its third delivery, at a rate that both can keep up with. */
  readonly p99Ms: number;
  readonly largestMib: number;
}

/** One process that takes clicks and delivers them. */
type Start = (folder: string) => Promise<Server>;

interface Work {
  readonly sinks: Sinks;
  readonly clicks: number;
  readonly seconds: number;
  /** Clicks a second. */
  readonly rate: number;
}

/** The whole way of a click against what one would write in a day. */
export const outboxPeer: Bench = async (options) => {
  const program = await installOutbox(join(options.directory, "outbox")).catch((error: unknown) => {
    options.note(`the peer could not be installed here, so nothing is compared. ${String(error)}`);
  });
  if (program === undefined) return [];
  await using sinks = await startSinks(options.directory);
  const clicks = options.quick ? CLICKS_QUICK : CLICKS;
  const seconds = options.quick ? STEADY_SECONDS_QUICK : STEADY_SECONDS;
  const startOurs: Start = (folder) => startService(join(folder, "log.sqlite"), networkSettings(sinks.url));
  const startPeer: Start = (folder) =>
    startServer(["node", program, join(folder, "outbox.sqlite"), sinks.url], folder, {});
  const { perSecond } = await inNewFolder(options.directory, startPeer, (server) => flood(server, sinks, clicks));
  const work = { sinks, clicks, seconds, rate: Math.round(perSecond / 2) };
  const { ours, peer } = await interleave(roundsOf(options), {
    ours: () => inNewFolder(options.directory, startOurs, (server) => measure(server, work, settled)),
    peer: () => inNewFolder(options.directory, startPeer, (server) => measure(server, work)),
  });
  options.note(`the peer: fastify, better-sqlite3 (FULL) and an outbox; its figures are in the column of the limit`);
  const row = (what: string, unit: string, value: (figures: Figures) => number, bar: ReturnType<typeof atLeast>) =>
    compare(`outbox, ${what}; the peer`, unit, ours.map(value), peer.map(value), bar);
  return [
    row("clicks fully delivered", "/s", (figures) => figures.perSecond, atLeast(5)),
    row(`p99 to the third delivery, ${work.rate} a second`, "ms", (figures) => figures.p99Ms, atMost(1)),
    row("largest memory", "MiB", (figures) => figures.largestMib, atMost(1)),
  ];
};

async function measure(
  server: Server,
  { sinks, clicks, seconds, rate }: Work,
  rested: (server: Server) => Promise<void> = async () => {},
): Promise<Figures> {
  const { perSecond } = await flood(server, sinks, clicks);
  await rested(server);
  await sinks.reset();
  const { requests } = await postSteadily(server.url, seconds, rate, STAMPED_CLICK);
  await sinks.reached(requests);
  return { perSecond, p99Ms: await sinks.p99Ms(), largestMib: await largestMib(server.pid) };
}

/** Posts clicks as fast as they are taken, and waits until all are delivered. */
async function flood(server: Server, sinks: Sinks, clicks: number): Promise<{ readonly perSecond: number }> {
  await sinks.reset();
  const start = performance.now();
  await postSome(server.url, clicks);
  await sinks.reached(clicks);
  return { perSecond: clicks / ((performance.now() - start) / 1000) };
}

async function inNewFolder<Result>(
  directory: string,
  start: Start,
  work: (server: Server) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(directory, "outbox-"));
  try {
    await using server = await start(folder);
    return await work(server);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
