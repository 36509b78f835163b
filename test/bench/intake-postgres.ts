import { join } from "node:path";
import { startPostgres } from "eventstore-lite/testing/postgres-server";
import { compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench/measure";
import { timeWithChildren } from "eventstore-lite/bench/processor-time";
import { CLIENT, measureClicks } from "./post-clicks.ts";
import { startService, startServiceOn, type Server } from "./server.ts";

const INSTANCES = 3;

/** Clicks a second, and the processor time of one in µs. */
interface SharedIntake {
  readonly perSecond: number;
  readonly services: number;
  readonly server: number;
}

/**
 * Durable 202s a second of three services that share a log on PostgreSQL, beside one of them, and beside one on SQLite,
 * with the processor time of a click in the services and in the server.
 */
export const intakePostgres: Bench = async (options) => {
  const seconds = options.quick ? 2 : 4;
  await using opening = new AsyncDisposableStack();
  const server = opening.use(await startPostgres({ durable: true }));
  const url = await server.newDatabase();
  const instances: Server[] = [];
  while (instances.length < INSTANCES) {
    instances.push(opening.use(await startServiceOn(url, options.directory, { REACHLOG_KEY: KEY })));
  }
  const sqlite = opening.use(await startService(join(options.directory, "beside-postgres.sqlite")));
  const measure = async (services: readonly Server[]): Promise<SharedIntake> => {
    const before = timeWithChildren(server.pid());
    const loads = await Promise.all(services.map((service) => measureClicks(service, seconds)));
    const requests = sum(loads, (load) => load.requests);
    return {
      perSecond: sum(loads, (load) => load.perSecond),
      services: sum(loads, (load) => (load.main + load.others) * load.requests) / requests,
      server: (timeWithChildren(server.pid()) - before) / requests,
    };
  };
  const { three, single, file } = await interleave(roundsOf(options), {
    three: () => measure(instances),
    single: () => measure(instances.slice(0, 1)),
    file: () => measure([sqlite]),
  });
  options.note(`the client is ${CLIENT}, one an instance; clients, services and the server share the machine`);
  const row = (what: string, unit: string, part: keyof SharedIntake, ours: typeof single, limit: typeof single) => {
    const values = (measured: typeof single) => measured.map((one) => one[part]);
    return compare(what, unit, values(ours), values(limit));
  };
  return [
    row("intake of one service on PostgreSQL; limit: on SQLite", "/s", "perSecond", single, file),
    row("the same, processor time of a click in the service", "µs", "services", single, file),
    row("intake of three services on PostgreSQL; limit: of one", "/s", "perSecond", three, single),
    row("the same, processor time of a click in the services", "µs", "services", three, single),
    row("the same, processor time of a click in the server", "µs", "server", three, single),
  ];
};

const KEY = Buffer.alloc(32, 7).toString("base64");

function sum<Load>(loads: readonly Load[], part: (load: Load) => number): number {
  return loads.reduce((total, load) => total + part(load), 0);
}
