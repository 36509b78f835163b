import { join } from "node:path";
import { startPostgres } from "eventstore-lite/testing/postgres-server";
import { compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench/measure";
import { CLIENT, postClicks, type LoadResult } from "./post-clicks.ts";
import { startService, startServiceOn, type Server } from "./server.ts";

const INSTANCES = 3;

/** Durable 202s a second of three services that share a log on PostgreSQL, beside one of them, and beside one on SQLite. */
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
  const one = instances[0]!;
  const { three, single, file } = await interleave(roundsOf(options), {
    three: async () => total(await Promise.all(instances.map((instance) => postClicks(instance.url, seconds)))),
    single: async () => (await postClicks(one.url, seconds)).perSecond,
    file: async () => (await postClicks(sqlite.url, seconds)).perSecond,
  });
  options.note(`the client is ${CLIENT}, one an instance; clients, services and the server share the machine`);
  return [
    compare("intake of one service on PostgreSQL; limit: on SQLite", "/s", single, file),
    compare("intake of three services on PostgreSQL; limit: of one", "/s", three, single),
  ];
};

const KEY = Buffer.alloc(32, 7).toString("base64");

function total(loads: readonly LoadResult[]): number {
  return loads.reduce((sum, { perSecond }) => sum + perSecond, 0);
}
