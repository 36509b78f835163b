import { openPostgresStore, type EventStore } from "../src/index.ts";
import { startPostgres } from "../testing/postgres-server.ts";
import { createCaller } from "./append-1000.ts";
import { appendConcurrently } from "./append-64.ts";
import { atLeast, compare, interleave, perSecond, roundsOf, type Bench, type Row } from "./measure.ts";
import { openRawConnection, type RawConnection } from "./raw-postgres-inserts.ts";
import { makeEvents } from "./sample-events.ts";

/** Processes of one service, each with a writer of its own; here in one process, which is no advantage. */
const CLIENTS = 3;
const SCHEMA = "eventstore";

interface Contenders {
  readonly stores: readonly EventStore[];
  readonly raw: readonly RawConnection[];
}

/** Starts a durable server with a log, and some that append to it and insert beside it. */
async function openContenders(opening: AsyncDisposableStack): Promise<Contenders> {
  const server = opening.use(await startPostgres({ durable: true }));
  const url = await server.newDatabase();
  const stores: EventStore[] = [];
  const raw: RawConnection[] = [];
  for (let client = 0; client < CLIENTS; client += 1) {
    stores.push(opening.use(await openPostgresStore({ url, schema: SCHEMA })));
    raw.push(opening.use(await openRawConnection(url, SCHEMA, client)));
  }
  return { stores, raw };
}

/** Events that the work of some clients at once makes durable in a second. */
function together(events: number, work: readonly (() => Promise<unknown>)[]): Promise<number> {
  return perSecond(events, () => Promise.all(work.map((begin) => begin())));
}

const CALLERS = 64;
const EVENTS_PER_CALLER = 150;
const EVENTS_PER_CALLER_QUICK = 20;

/** As `append-64`, on PostgreSQL: by one client, and by three that share the log. */
export const append64Postgres: Bench = async (options) => {
  await using opening = new AsyncDisposableStack();
  const { stores, raw } = await openContenders(opening);
  const each = options.quick ? EVENTS_PER_CALLER_QUICK : EVENTS_PER_CALLER;
  const events = CALLERS * each;
  const ours = (clients: number) =>
    together(
      clients * events,
      stores.slice(0, clients).map((store) => () => appendConcurrently(store, CALLERS, each)),
    );
  const limit = (clients: number) => {
    const work = raw.slice(0, clients).map((connection) => connection.prepare(makeEvents(events), CALLERS, CALLERS));
    return together(clients * events, work);
  };
  return rowsOf("append-64 on PostgreSQL", await race(options, ours, limit), [0.7, 0.5]);
};

const BATCH_EVENTS = 1_000;
const BATCHES = 10;
const BATCHES_QUICK = 2;

/** Batches with expected versions on PostgreSQL: by one client, and by three that share the log. */
export const append1000Postgres: Bench = async (options) => {
  await using opening = new AsyncDisposableStack();
  const { stores, raw } = await openContenders(opening);
  const callers = stores.map((store, client) => createCaller(store, `client-${client}`, BATCH_EVENTS));
  const batches = options.quick ? BATCHES_QUICK : BATCHES;
  const events = batches * BATCH_EVENTS;
  const ours = (clients: number) => {
    return together(
      clients * events,
      callers.slice(0, clients).map((caller) => caller.prepare(batches)),
    );
  };
  const limit = (clients: number) => {
    const work = raw.slice(0, clients).map((connection) => connection.prepare(makeEvents(events), 1, BATCH_EVENTS));
    return together(clients * events, work);
  };
  return rowsOf("append-1000 on PostgreSQL", await race(options, ours, limit), [0.7, 0.6]);
};

type Rates = Readonly<Record<"one" | "oneRaw" | "three" | "threeRaw", readonly number[]>>;

function race(
  options: Parameters<Bench>[0],
  ours: (clients: number) => Promise<number>,
  limit: (clients: number) => Promise<number>,
): Promise<Rates> {
  return interleave(roundsOf(options), {
    one: () => ours(1),
    oneRaw: () => limit(1),
    three: () => ours(CLIENTS),
    threeRaw: () => limit(CLIENTS),
  });
}

function rowsOf(what: string, rates: Rates, [one, three]: readonly [number, number]): readonly Row[] {
  return [
    compare(`${what}, one client; limit: raw inserts, same indexes`, "/s", rates.one, rates.oneRaw, atLeast(one)),
    compare(`${what}, three clients; limit: raw inserts by three`, "/s", rates.three, rates.threeRaw, atLeast(three)),
  ];
}
