import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSqliteStore, type EventStore } from "../src/index.ts";
import { outputOf } from "./child.ts";
import { createCaller } from "./append-1000.ts";
import { appendConcurrently } from "./append-64.ts";
import {
  atLeast,
  compare,
  interleave,
  perSecond,
  roundsOf,
  type Bench,
  type BenchOptions,
  type Row,
} from "./measure.ts";
import type { Job } from "./emmett.ts";

const CALLERS = 64;
const EVENTS_PER_CALLER = 40;
const BATCH_EVENTS = 100;
const BATCHES = 100;
const STREAM_EVENTS = 100_000;

/** Pinned: a figure of "the newest" would say nothing tomorrow. The last three are what emmett leaves to its user. */
const PEER = {
  "@event-driven-io/emmett-sqlite": "0.42.4",
  "@event-driven-io/emmett": "0.42.0",
  sqlite3: "5.1.7",
  uuid: "10.0.0",
  "async-retry": "1.3.3",
  commander: "12.1.0",
};

/** What one would take instead: emmett-sqlite, in a process of its own, on the runtime where it is fastest (Bun). */
export const peers: Bench = async (options) => {
  const home = join(options.directory, "emmett");
  const refusal = await install(home);
  if (refusal !== undefined) {
    options.note(`emmett-sqlite could not be installed here, so nothing is compared. ${refusal}`);
    return [];
  }
  options.note("emmett-sqlite's figures are in the column of the limit; the ratio says how many times as fast ours is");
  const each = options.quick ? EVENTS_PER_CALLER / 4 : EVENTS_PER_CALLER;
  const batches = options.quick ? BATCHES / 4 : BATCHES;
  await using store = await openSqliteStore({ file: join(options.directory, "peers.sqlite") });
  const ask = (job: Job): Promise<number> => askEmmett(home, job);
  const one = createCaller(store, "one", BATCH_EVENTS);
  const rates = await interleave(roundsOf(options), {
    append: () => appendConcurrently(store, CALLERS, each * 10),
    peerAppend: () => ask({ kind: "append", callers: CALLERS, each }),
    batch: () => perSecond(batches * BATCH_EVENTS, one.prepare(batches)),
    peerBatch: () => ask({ kind: "batch", batches, batchEvents: BATCH_EVENTS }),
  });
  return [
    compare("one durable append, 64 callers; emmett-sqlite", "/s", rates.append, rates.peerAppend, atLeast(40)),
    compare("100 a batch on one stream; emmett-sqlite", "/s", rates.batch, rates.peerBatch),
    await compareFolds(options, store, ask),
  ];
};

async function compareFolds(
  options: BenchOptions,
  store: EventStore,
  ask: (job: Job) => Promise<number>,
): Promise<Row> {
  const events = options.quick ? STREAM_EVENTS / 10 : STREAM_EVENTS;
  await createCaller(store, "long", 1_000).prepare(events / 1_000)();
  await ask({ kind: "fill", events });
  const { ours, peer } = await interleave(roundsOf(options), {
    ours: () => perSecond(events, () => fold(store, events)),
    peer: () => ask({ kind: "fold", events }),
  });
  return compare(`folding a stream of ${events.toLocaleString("en")}; emmett-sqlite`, "/s", ours, peer, atLeast(5));
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

/** Puts the peer into a folder of its own. Answers why that did not work. */
async function install(home: string): Promise<string | undefined> {
  mkdirSync(home);
  // The native module is downloaded by its install script, or built where that fails, which takes minutes.
  const manifest = { private: true, dependencies: PEER, trustedDependencies: ["sqlite3"] };
  writeFileSync(join(home, "package.json"), JSON.stringify(manifest));
  // npm hands its settings on to the build (where the headers of Node lie, say); where there is none, Bun does as well.
  const npm = ["npm", "install", "--legacy-peer-deps", "--no-audit", "--no-fund"];
  try {
    await outputOf(Bun.which("npm") === null ? [process.execPath, "install"] : npm, { cwd: home });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Has the peer do a job in a new process, and answers how many a second it says it did. */
async function askEmmett(home: string, job: Job): Promise<number> {
  const rate = Number(
    await outputOf([process.execPath, join(import.meta.dirname, "emmett.ts"), home, JSON.stringify(job)]),
  );
  if (!(rate > 0)) throw new Error(`emmett-sqlite, ${job.kind}: no figure`);
  return rate;
}
