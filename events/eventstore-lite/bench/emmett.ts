/**
 * One job for emmett-sqlite, in a process of its own: prints how many events a second.
 * Arguments: the folder in which it is installed, the job as JSON.
 */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { perSecond } from "./measure.ts";
import { makeEvents } from "./sample-events.ts";

export type Job =
  | { readonly kind: "append"; readonly callers: number; readonly each: number }
  | { readonly kind: "batch"; readonly batches: number; readonly batchEvents: number }
  /** Makes the stream that `fold` reads. */
  | { readonly kind: "fill"; readonly events: number }
  | { readonly kind: "fold"; readonly events: number };

// The part of its interface that is used here; the package is installed only where it is compared.
interface Connection {
  command(sql: string): Promise<unknown>;
  querySingle(sql: string): Promise<Record<string, unknown> | null>;
  close(): void;
}
interface Store {
  readonly schema: { migrate(): Promise<void> };
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
interface Emmett {
  sqliteConnection(options: { fileName: string }): Connection;
  SQLiteConnectionPool(options: object): unknown;
  getSQLiteEventStore(options: object): Store;
}

const FILL_BATCH_EVENTS = 100;

const [home = "", text = ""] = process.argv.slice(2);
const job = JSON.parse(text) as Job;
const emmett = createRequire(join(home, "package.json"))("@event-driven-io/emmett-sqlite") as Emmett;
const isLong = job.kind === "fill" || job.kind === "fold";
const fileName = join(home, isLong ? "long.sqlite" : `${randomUUID()}.sqlite`);

// Its fastest durable setting: one connection that stays open (its default opens one for each append), and no look at
// the schema after the first.
const connection = emmett.sqliteConnection({ fileName });
// It asks for WAL by itself, but does not wait for it.
await connection.command("PRAGMA journal_mode = WAL");
await connection.command("PRAGMA synchronous = FULL");
await expectPragma("synchronous", 2);
await expectPragma("journal_mode", "wal");
const connectionOptions = { singleton: true, connection };
const pool = emmett.SQLiteConnectionPool({ fileName, connectionOptions });
const store = emmett.getSQLiteEventStore({ fileName, pool, schema: { autoMigration: "None" } });
if (job.kind !== "fold") await emmett.getSQLiteEventStore({ fileName, pool }).schema.migrate();

process.stdout.write(String(await perform(job)));
connection.close();

async function expectPragma(name: string, wanted: unknown): Promise<void> {
  const found = Object.values((await connection.querySingle(`PRAGMA ${name}`)) ?? {})[0];
  if (found !== wanted) throw new Error(`${name} is ${String(found)}`);
}

/** Each job is done once before it counts, as ours was: this process is new. */
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

/**
 * Callers take turns: on a connection that is shared, emmett-sqlite lets concurrent appends join a transaction that
 * another one commits later, so they would be acknowledged before they are durable.
 */
async function append(callers: number, each: number): Promise<number> {
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = (work: () => Promise<unknown>): Promise<unknown> => (turn = turn.then(work));
  const round = (name: string): Promise<number> => {
    const events = Array.from({ length: callers }, () => makeEvents(each).map(asEmmetts));
    const call = async (mine: readonly unknown[], caller: number): Promise<void> => {
      for (const [index, event] of mine.entries()) {
        const expected = { expectedStreamVersion: BigInt(index) };
        await inTurn(() => store.appendToStream(`${name}-${caller}`, [event], expected));
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
