import type { EventStore } from "../src/index.ts";
import { openPostgresStore } from "../src/postgres.ts";
import { startPostgres } from "../src/testing/postgres-server.ts";
import { createCaller } from "./append-batches-of-1000.ts";
import { appendConcurrently } from "./append-by-64-callers.ts";
import {
  atLeast,
  compare,
  interleave,
  perSecond,
  roundsOf,
  type Bar,
  type Bench,
  type Row,
} from "./compare-contenders.ts";
import { timeWithChildren } from "./read-processor-time.ts";
import { openRawConnection, type RawConnection } from "./raw-postgres-inserts.ts";
import { makeEvents } from "./sample-events.ts";

/**
 * Number of stores that share one log, like the instances of one service. They run in one process here, which does not
 * make them faster.
 */
const CLIENTS = 3;
const SCHEMA = "eventstore";

interface Contenders {
  /**
   * The process id of the postmaster, PostgreSQL's first process. Its processor time and that of its children is
   * measured.
   */
  readonly pid: number;
  readonly stores: readonly EventStore[];
  readonly raw: readonly RawConnection[];
}

/** Starts a durable server with a log, clients that append to it, and clients that insert into another table. */
async function openContenders(opening: AsyncDisposableStack): Promise<Contenders> {
  const server = opening.use(await startPostgres({ durable: true }));
  const url = await server.newDatabase();
  const stores: EventStore[] = [];
  const raw: RawConnection[] = [];
  for (let client = 0; client < CLIENTS; client += 1) {
    stores.push(opening.use(await openPostgresStore({ url, schema: SCHEMA })));
    raw.push(opening.use(await openRawConnection(url, SCHEMA, client)));
  }
  return { pid: server.pid(), stores, raw };
}

/**
 * Result of clients that append to one log at once: the events that became durable in a second, and the processor time
 * of clients and server for each event, in µs.
 */
interface Shared {
  readonly perSecond: number;
  readonly clients: number;
  readonly server: number;
}

/** Runs the work of several clients at once and measures it; `pid` is the first process of the PostgreSQL server. */
async function together(pid: number, events: number, work: readonly (() => Promise<unknown>)[]): Promise<Shared> {
  const times = () => ({ clients: timeWithChildren(process.pid), server: timeWithChildren(pid) });
  const before = times();
  const rate = await perSecond(events, () => Promise.all(work.map((begin) => begin())));
  const after = times();
  return {
    perSecond: rate,
    clients: (after.clients - before.clients) / events,
    server: (after.server - before.server) / events,
  };
}

const CALLERS = 64;
const EVENTS_PER_CALLER = 150;
const EVENTS_PER_CALLER_QUICK = 20;

/** Benchmark `append-64` on PostgreSQL: one client alone, then three clients that share the log. */
export const append64Postgres: Bench = async (options) => {
  await using opening = new AsyncDisposableStack();
  const { pid, stores, raw } = await openContenders(opening);
  const each = options.quick ? EVENTS_PER_CALLER_QUICK : EVENTS_PER_CALLER;
  const events = CALLERS * each;
  const ours = (clients: number) =>
    together(
      pid,
      clients * events,
      stores.slice(0, clients).map((store) => () => appendConcurrently(store, CALLERS, each)),
    );
  const limit = (clients: number) => {
    const work = raw.slice(0, clients).map((connection) => connection.prepare(makeEvents(events), CALLERS, CALLERS));
    return together(pid, clients * events, work);
  };
  return rowsOf("append-64 on PostgreSQL", await race(options, ours, limit), [0.7, 0.5]);
};

const BATCH_EVENTS = 1_000;
const BATCHES = 10;
const BATCHES_QUICK = 2;

/**
 * Benchmark of batches with expected versions on PostgreSQL: one client alone, then three clients that share the log.
 */
export const append1000Postgres: Bench = async (options) => {
  await using opening = new AsyncDisposableStack();
  const { pid, stores, raw } = await openContenders(opening);
  const callers = stores.map((store, client) => createCaller(store, `client-${client}`, BATCH_EVENTS));
  const batches = options.quick ? BATCHES_QUICK : BATCHES;
  const events = batches * BATCH_EVENTS;
  const ours = (clients: number) => {
    return together(
      pid,
      clients * events,
      callers.slice(0, clients).map((caller) => caller.prepare(batches)),
    );
  };
  const limit = (clients: number) => {
    const work = raw.slice(0, clients).map((connection) => connection.prepare(makeEvents(events), 1, BATCH_EVENTS));
    return together(pid, clients * events, work);
  };
  return rowsOf("append-1000 on PostgreSQL", await race(options, ours, limit), [0.7, 0.6]);
};

type Measured = Readonly<Record<"one" | "oneRaw" | "three" | "threeRaw", readonly Shared[]>>;

function race(
  options: Parameters<Bench>[0],
  ours: (clients: number) => Promise<Shared>,
  limit: (clients: number) => Promise<Shared>,
): Promise<Measured> {
  return interleave(roundsOf(options), {
    one: () => ours(1),
    oneRaw: () => limit(1),
    three: () => ours(CLIENTS),
    threeRaw: () => limit(CLIENTS),
  });
}

function rowsOf(what: string, measured: Measured, bars: readonly [one: number, three: number]): readonly Row[] {
  const row = (
    text: string,
    part: keyof Shared,
    ours: "one" | "three",
    limit: "oneRaw" | "threeRaw",
    bar?: Bar,
  ): Row => {
    const values = (name: keyof Measured) => measured[name].map((one) => one[part]);
    return compare(`${what}, ${text}`, part === "perSecond" ? "/s" : "µs", values(ours), values(limit), bar);
  };
  return [
    row("one client; limit: raw inserts, same indexes", "perSecond", "one", "oneRaw", atLeast(bars[0])),
    row("processor time of an event in the client", "clients", "one", "oneRaw"),
    row("processor time of an event in the server", "server", "one", "oneRaw"),
    row("three clients; limit: raw inserts by three", "perSecond", "three", "threeRaw", atLeast(bars[1])),
    row("processor time of an event in the server, of three", "server", "three", "threeRaw"),
  ];
}
