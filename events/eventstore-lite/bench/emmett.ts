/**
 * Does one job with emmett, the event store that the benchmarks compare with, and prints the events per second.
 * Arguments: the folder where it is installed, the job as JSON, a PostgreSQL URL (without one it uses SQLite).
 */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { perSecond } from "./compare-contenders.ts";
import { makeEvents } from "./sample-events.ts";

export type Job =
  | { readonly kind: "append"; readonly callers: number; readonly each: number }
  | { readonly kind: "batch"; readonly batches: number; readonly batchEvents: number }
  /** Job that writes the stream which a `fold` job then reads. */
  | { readonly kind: "fill"; readonly events: number }
  | { readonly kind: "fold"; readonly events: number };

// The parts of emmett's stores that the benchmarks use. They are declared here, because emmett's packages are installed
// only where the stores are compared.
interface Store {
  readonly schema: { migrate(): Promise<unknown> };
  appendToStream(
    stream: string,
    events: readonly unknown[],
    options: { expectedStreamVersion: bigint },
  ): Promise<unknown>;
  aggregateStream<State>(
    stream: string,
    options: { initialState: () => State; evolve: (state: State, event: { data: { sku: string } }) => State },
  ): Promise<{ state: State }>;
}
interface SqliteConnection {
  command(sql: string): Promise<unknown>;
  querySingle(sql: string): Promise<Record<string, unknown> | null>;
  close(): void;
}
interface EmmettSqlite {
  sqliteConnection(options: { fileName: string }): SqliteConnection;
  SQLiteConnectionPool(options: object): unknown;
  getSQLiteEventStore(options: object): Store;
}
interface PostgresPool {
  query(sql: string): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
  end(): Promise<void>;
}
interface EmmettPostgres {
  getPostgreSQLEventStore(url: string, options: object): Store;
}

interface Opened {
  readonly store: Store;
  /** True if several callers may append to this emmett store at the same time. */
  readonly isConcurrent: boolean;
  close(): unknown;
}

const FILL_BATCH_EVENTS = 100;

const [home = "", text = "", url] = process.argv.slice(2);
const job = JSON.parse(text) as Job;
const installed = createRequire(join(home, "package.json"));
const { store, isConcurrent, close } = await (url === undefined ? openOnSqlite() : openOnPostgres(url));

process.stdout.write(String(await perform(job)));
await close();

/**
 * Opens emmett's SQLite store in its fastest durable setting: one connection that stays open. By default it opens one
 * for each append.
 */
async function openOnSqlite(): Promise<Opened> {
  const emmett = installed("@event-driven-io/emmett-sqlite") as EmmettSqlite;
  const isLong = job.kind === "fill" || job.kind === "fold";
  const fileName = join(home, isLong ? "long.sqlite" : `${randomUUID()}.sqlite`);
  const connection = emmett.sqliteConnection({ fileName });
  // emmett requests WAL by itself, but does not wait until it is set.
  await connection.command("PRAGMA journal_mode = WAL");
  await connection.command("PRAGMA synchronous = FULL");
  const pragma = async (name: string): Promise<unknown> =>
    Object.values((await connection.querySingle(`PRAGMA ${name}`)) ?? {})[0];
  expectSetting("synchronous", await pragma("synchronous"), 2);
  expectSetting("journal_mode", await pragma("journal_mode"), "wal");
  const pool = emmett.SQLiteConnectionPool({ fileName, connectionOptions: { singleton: true, connection } });
  const open = (options: object): Store => emmett.getSQLiteEventStore({ fileName, pool, ...options });
  // On a shared connection, emmett lets concurrent appends join a transaction that another one commits later, so they
  // would be acknowledged before they are durable.
  return { store: await migrated(open), isConcurrent: false, close: () => connection.close() };
}

/**
 * Opens emmett's PostgreSQL store with as many connections as callers. No other number is faster for 64 callers; 16 and
 * 32 are as fast.
 */
async function openOnPostgres(connectionString: string): Promise<Opened> {
  const emmett = installed("@event-driven-io/emmett-postgresql") as EmmettPostgres;
  const { Pool } = installed("pg") as { Pool: new (options: object) => PostgresPool };
  const max = job.kind === "append" ? job.callers : 1;
  const pool = new Pool({ connectionString, max });
  for (const name of ["fsync", "synchronous_commit"]) {
    const { rows } = await pool.query(`SHOW ${name}`);
    expectSetting(name, rows[0]?.[name], "on");
  }
  const open = (options: object): Store =>
    emmett.getPostgreSQLEventStore(connectionString, { connectionOptions: { pool }, ...options });
  return { store: await migrated(open), isConcurrent: true, close: () => pool.end() };
}

/** Creates the tables of an emmett store, and opens it so that it does not check them again. */
async function migrated(open: (options: object) => Store): Promise<Store> {
  if (job.kind !== "fold") await open({}).schema.migrate();
  return open({ schema: { autoMigration: "None" } });
}

function expectSetting(name: string, found: unknown, wanted: unknown): void {
  if (found !== wanted) throw new Error(`${name} is ${String(found)}`);
}

/**
 * Runs a job and returns its events per second. A measured job first runs once uncounted, because this process is new
 * and nothing is compiled yet.
 */
function perform(job: Job): Promise<number> {
  switch (job.kind) {
    case "append":
      return append(job.callers, job.each);
    case "batch":
      return batch(job.batches, job.batchEvents);
    case "fill":
      return appendBatches("long-1", job.events / FILL_BATCH_EVENTS, FILL_BATCH_EVENTS);
    default:
      return fold(job.events);
  }
}

async function append(callers: number, each: number): Promise<number> {
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = (work: () => Promise<unknown>): Promise<unknown> => (turn = turn.then(work));
  const inItsTime = isConcurrent ? (work: () => Promise<unknown>): Promise<unknown> => work() : inTurn;
  const round = (name: string): Promise<number> => {
    const events = Array.from({ length: callers }, () => makeEvents(each).map(asEmmetts));
    const call = async (mine: readonly unknown[], caller: number): Promise<void> => {
      for (const [index, event] of mine.entries()) {
        const expected = { expectedStreamVersion: BigInt(index) };
        await inItsTime(() => store.appendToStream(`${name}-${caller}`, [event], expected));
      }
    };
    return perSecond(callers * each, () => Promise.all(events.map(call)));
  };
  await round("uncounted");
  return round("cart");
}

async function batch(batches: number, batchEvents: number): Promise<number> {
  await appendBatches("uncounted-1", batches, batchEvents);
  return appendBatches("long-1", batches, batchEvents);
}

function appendBatches(stream: string, batches: number, batchEvents: number): Promise<number> {
  const made = Array.from({ length: batches }, () => makeEvents(batchEvents).map(asEmmetts));
  return perSecond(batches * batchEvents, async () => {
    for (const [index, events] of made.entries()) {
      await store.appendToStream(stream, events, { expectedStreamVersion: BigInt(index * batchEvents) });
    }
  });
}

async function fold(events: number): Promise<number> {
  const once = async (): Promise<void> => {
    const { state } = await store.aggregateStream("long-1", {
      initialState: () => ({ items: 0, last: "" }),
      evolve: (state, { data }) => {
        state.items++;
        state.last = data.sku;
        return state;
      },
    });
    if (state.items !== events) throw new Error(`${state.items} events were folded instead of ${events}`);
  };
  await once();
  return perSecond(events, once);
}

function asEmmetts({ type, data, meta }: { type: string; data: unknown; meta: unknown }): unknown {
  return { type, data, metadata: meta };
}
