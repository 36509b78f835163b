import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  atLeast,
  atMost,
  compare,
  interleave,
  roundsOf,
  type Bar,
  type Bench,
  type BenchOptions,
  type Row,
} from "eventstore-lite/bench";
import { STAMPED_CLICK } from "./sample-click.ts";
import { largestMib } from "./resident-memory.ts";
import { alone, installBullMq, installSqliteOutbox, type Contender, type Peer } from "./install-outbox-peers.ts";
import { settled } from "./count-and-await-pending-dispatches.ts";
import { postSome, postSteadily } from "./post-clicks.ts";
import { startService } from "./start-service-process.ts";
import { networkSettings, startSinks, type Sinks } from "./start-network-sinks.ts";

/**
 * Number of clicks in a flood. With fewer clicks no program reaches its full speed, because its code is still being
 * compiled.
 */
const CLICKS = 20_000;
const CLICKS_QUICK = 1_000;

const STEADY_SECONDS = 5;
const STEADY_SECONDS_QUICK = 2;

interface Figures {
  /** Clicks delivered to all three channels per second, if they are sent as fast as they are accepted. */
  readonly perSecond: number;
  /**
   * Delivery time that 99 percent of the clicks do not exceed, in ms: from the sending of a click until all three
   * channels have it. It is measured at a rate that each compared program sustains.
   */
  readonly p99Ms: number;
  readonly largestMib: number;
}

interface Work {
  readonly sinks: Sinks;
  readonly clicks: number;
  readonly seconds: number;
  /** Clicks posted a second at the steady rate. */
  readonly rate: number;
}

/**
 * Measures how the service accepts clicks durably and delivers them. Compared with an outbox that could be written in a
 * day, and with one that a team would use.
 */
export const outbox: Bench = async (options) => {
  const peers = await installPeers(options);
  if (peers.length === 0) return [];
  await using sinks = await startSinks(options.directory);
  const clicks = options.quick ? CLICKS_QUICK : CLICKS;
  const seconds = options.quick ? STEADY_SECONDS_QUICK : STEADY_SECONDS;
  const floods: number[] = [];
  for (const { start } of peers) {
    const began = (folder: string): Promise<Contender> => start(folder, sinks.url);
    floods.push(await inNewFolder(options.directory, began, (contender) => flood(contender, sinks, clicks)));
  }
  const work = { sinks, clicks, seconds, rate: Math.round(Math.min(...floods) / 2) };
  const figures = await interleave(roundsOf(options), contendersOf(options.directory, peers, work));
  return peers.flatMap(({ name }) => rowsOf(name, work.rate, figures["ours"]!, figures[name]!));
};

async function installPeers(options: BenchOptions): Promise<readonly Peer[]> {
  const peers: Peer[] = [];
  for (const install of [installSqliteOutbox, installBullMq]) {
    try {
      peers.push(await install(mkdtempSync(join(options.directory, "peer-"))));
    } catch (error) {
      options.note(`a peer could not be installed here, so nothing is compared with it. ${String(error)}`);
    }
  }
  if (peers.length > 0) options.note("the peers' figures are in the column of the limit");
  return peers;
}

function contendersOf(
  directory: string,
  peers: readonly Peer[],
  work: Work,
): Readonly<Record<string, () => Promise<Figures>>> {
  const startOurs = async (folder: string): Promise<Contender> =>
    alone(await startService(join(folder, "log.sqlite"), networkSettings(work.sinks.url)));
  const ours = (): Promise<Figures> =>
    inNewFolder(directory, startOurs, (contender) => measure(contender, work, settled));
  const theirs = peers.map(({ name, start }) => {
    const startPeer = (folder: string): Promise<Contender> => start(folder, work.sinks.url);
    return [name, () => inNewFolder(directory, startPeer, (contender) => measure(contender, work))] as const;
  });
  return { ours, ...Object.fromEntries(theirs) };
}

function rowsOf(peer: string, rate: number, ours: readonly Figures[], theirs: readonly Figures[]): readonly Row[] {
  const row = (what: string, unit: string, value: (figures: Figures) => number, bar: Bar): Row =>
    compare(`outbox, ${what}; ${peer}`, unit, ours.map(value), theirs.map(value), bar);
  return [
    row("clicks fully delivered", "/s", (figures) => figures.perSecond, atLeast(5)),
    row(`p99 to the third delivery, ${rate} a second`, "ms", (figures) => figures.p99Ms, atMost(1)),
    row("largest memory", "MiB", (figures) => figures.largestMib, atMost(1)),
  ];
}

async function measure(
  contender: Contender,
  { sinks, clicks, seconds, rate }: Work,
  rested: (contender: Contender) => Promise<void> = async () => {},
): Promise<Figures> {
  const perSecond = await flood(contender, sinks, clicks);
  await rested(contender);
  await sinks.reset();
  const { requests } = await postSteadily(contender.url, seconds, rate, STAMPED_CLICK);
  await sinks.reached(requests);
  const memory = await Promise.all(contender.pids.map(largestMib));
  return { perSecond, p99Ms: await sinks.p99Ms(), largestMib: memory.reduce((sum, mib) => sum + mib) };
}

/** Posts clicks as fast as they are accepted and waits until all are delivered. Returns the clicks a second. */
async function flood(contender: Contender, sinks: Sinks, clicks: number): Promise<number> {
  await sinks.reset();
  const start = performance.now();
  await postSome(contender.url, clicks);
  await sinks.reached(clicks);
  return clicks / ((performance.now() - start) / 1000);
}

async function inNewFolder<Result>(
  directory: string,
  start: (folder: string) => Promise<Contender>,
  work: (contender: Contender) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(directory, "outbox-"));
  try {
    await using contender = await start(folder);
    return await work(contender);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
