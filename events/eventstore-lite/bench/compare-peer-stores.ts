import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSqliteStore, type EventStore } from "../src/index.ts";
import { openPostgresStore } from "../src/postgres.ts";
import { startPostgres } from "../src/testing/postgres-server.ts";
import { outputOf } from "./start-child-process.ts";
import { createCaller } from "./append-batches-of-1000.ts";
import { appendConcurrently } from "./append-by-64-callers.ts";
import {
  atLeast,
  compare,
  interleave,
  perSecond,
  roundsOf,
  type Bench,
  type BenchOptions,
  type Row,
} from "./compare-contenders.ts";
import type { Job } from "./emmett.ts";

const CALLERS = 64;
const EVENTS_PER_CALLER = 40;
const BATCH_EVENTS = 100;
const BATCHES = 100;
const STREAM_EVENTS = 100_000;

/**
 * Packages of emmett, and all that it leaves to its user to install. Versions are pinned, because a figure of "the
 * newest" would be worthless tomorrow.
 */
const EMMETT = { "@event-driven-io/emmett": "0.42.0", uuid: "10.0.0", "async-retry": "1.3.3", commander: "12.1.0" };
const EMMETT_SQLITE = { ...EMMETT, "@event-driven-io/emmett-sqlite": "0.42.4", sqlite3: "5.1.7" };
const EMMETT_POSTGRES = {
  ...EMMETT,
  "@event-driven-io/emmett-postgresql": "0.42.0",
  "@event-driven-io/pongo": "0.16.11",
  "@event-driven-io/dumbo": "0.12.7",
  pg: "8.23.1",
  "pg-connection-string": "2.14.1",
  ansis: "3.17.0",
  "cli-table3": "0.6.5",
};

/**
 * Another event store that the benchmarks compare this package with. It runs in a separate process, on the runtime
 * where it is fastest (Bun).
 */
interface Peer {
  readonly name: string;
  /**
   * Runs a job of a benchmark with the other event store in a new process, and returns the number of events per second
   * that the process reports.
   */
  ask(job: Job): Promise<number>;
}

/** Targets of the comparison with a peer: how many times as fast as the peer this package should be. */
interface Bars {
  readonly append: number;
  readonly fold: number;
}

export const peers: Bench = async (options) => {
  const home = await install(options, "emmett-sqlite", EMMETT_SQLITE);
  if (home === undefined) return [];
  await using store = await openSqliteStore({ file: join(options.directory, "peers.sqlite") });
  const peer = { name: "emmett-sqlite", ask: (job: Job) => askEmmett(home, job) };
  return await comparePeer(options, store, peer, { append: 40, fold: 5 });
};

/** Benchmark of this package against emmett on PostgreSQL; one server holds the logs of both. */
export const peersPostgres: Bench = async (options) => {
  const home = await install(options, "emmett-postgresql", EMMETT_POSTGRES);
  if (home === undefined) return [];
  await using server = await startPostgres({ durable: true });
  await using store = await openPostgresStore({ url: await server.newDatabase(), schema: "eventstore" });
  const long = await server.newDatabase();
  const isOfLong = ({ kind }: Job): boolean => kind === "fill" || kind === "fold";
  const ask = async (job: Job): Promise<number> =>
    askEmmett(home, job, isOfLong(job) ? long : await server.newDatabase());
  return await comparePeer(options, store, { name: "emmett-postgresql", ask }, { append: 3, fold: 2 });
};

async function comparePeer(
  options: BenchOptions,
  store: EventStore,
  { name, ask }: Peer,
  bars: Bars,
): Promise<readonly Row[]> {
  options.note(`${name}'s figures are in the column of the limit; the ratio says how many times as fast ours is`);
  const each = options.quick ? EVENTS_PER_CALLER / 4 : EVENTS_PER_CALLER;
  const batches = options.quick ? BATCHES / 4 : BATCHES;
  const one = createCaller(store, "one", BATCH_EVENTS);
  const rates = await interleave(roundsOf(options), {
    append: () => appendConcurrently(store, CALLERS, each * 10),
    peerAppend: () => ask({ kind: "append", callers: CALLERS, each }),
    batch: () => perSecond(batches * BATCH_EVENTS, one.prepare(batches)),
    peerBatch: () => ask({ kind: "batch", batches, batchEvents: BATCH_EVENTS }),
  });
  const folds = await interleaveFolds(options, store, ask);
  const events = streamEventsOf(options).toLocaleString("en");
  return [
    compare(`one durable append, 64 callers; ${name}`, "/s", rates.append, rates.peerAppend, atLeast(bars.append)),
    compare(`100 a batch on one stream; ${name}`, "/s", rates.batch, rates.peerBatch),
    compare(`folding a stream of ${events}; ${name}`, "/s", folds.ours, folds.peer, atLeast(bars.fold)),
  ];
}

async function interleaveFolds(options: BenchOptions, store: EventStore, ask: Peer["ask"]) {
  const events = streamEventsOf(options);
  await createCaller(store, "long", 1_000).prepare(events / 1_000)();
  await ask({ kind: "fill", events });
  return interleave(roundsOf(options), {
    ours: () => perSecond(events, () => fold(store, events)),
    peer: () => ask({ kind: "fold", events }),
  });
}

function streamEventsOf({ quick }: BenchOptions): number {
  return quick ? STREAM_EVENTS / 10 : STREAM_EVENTS;
}

async function fold(store: EventStore, events: number): Promise<void> {
  const state = { items: 0, last: "" };
  for await (const batch of store.readFolded({ stream: "long" })) {
    for (const { data } of batch) {
      state.items++;
      state.last = (data as { sku: string }).sku;
    }
  }
  if (state.items !== events) throw new Error(`${state.items} events were folded instead of ${events}`);
}

/**
 * Installs another event store, with which this package is compared, in a new folder, and returns the folder. If the
 * installation fails, adds a note to the results and returns undefined.
 */
async function install(options: BenchOptions, name: string, dependencies: object): Promise<string | undefined> {
  const home = join(options.directory, name);
  mkdirSync(home);
  // The install script of sqlite3, a module of the peer in native code, has to run: it downloads the module or, if that
  // fails, builds it, which takes minutes.
  const manifest = { private: true, dependencies, trustedDependencies: ["sqlite3"] };
  writeFileSync(join(home, "package.json"), JSON.stringify(manifest));
  // Installs with npm, which passes its settings to the build, such as the location of Node's headers; where npm is
  // missing, with Bun.
  const npm = ["npm", "install", "--legacy-peer-deps", "--no-audit", "--no-fund"];
  try {
    await outputOf(Bun.which("npm") === null ? [process.execPath, "install"] : npm, { cwd: home });
    return home;
  } catch (error) {
    const refusal = error instanceof Error ? error.message : String(error);
    options.note(`${name} could not be installed here, so nothing is compared. ${refusal}`);
    return undefined;
  }
}

async function askEmmett(home: string, job: Job, ...url: readonly string[]): Promise<number> {
  const program = join(import.meta.dirname, "emmett.ts");
  const rate = Number(await outputOf([process.execPath, program, home, JSON.stringify(job), ...url]));
  if (!(rate > 0)) throw new Error(`emmett, ${job.kind}: no figure`);
  return rate;
}
