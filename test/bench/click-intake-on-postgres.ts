import { join } from "node:path";
import {
  atLeast,
  compare,
  interleave,
  roundsOf,
  type Bench,
  processorTimeOf,
  timeWithChildren,
  type ProcessorTime,
} from "eventstore-lite/bench";
import { startPostgres } from "eventstore-lite/testing";
import { CLIENT, measureClicks } from "./post-clicks.ts";
import { startService, startServiceOn, type Server } from "./start-service-process.ts";

const INSTANCES = 3;

/** Intake of services that share a log. Times are processor times in µs for each click. */
interface SharedIntake {
  readonly perSecond: number;
  /** Processor time of the services that received the clicks. */
  readonly services: number;
  readonly server: number;
  /**
   * Part of `server`: the connections that append. Only one connection appends at a time, so this part limits all
   * services together.
   */
  readonly turn: number;
  /**
   * Processor time that a service needs for each click that another service received. The next field is the part of its
   * request thread.
   */
  readonly following: number;
  readonly followingMain: number;
  /** Processor time of a service's request thread for each click that the service received. */
  readonly main: number;
}

/**
 * Measures durably accepted clicks a second: of three services on one PostgreSQL log, of one service there, and of one
 * on SQLite. Processor times show how many three services could receive if each thread had its own core.
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
  const writers = await server.ask(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'eventstore-lite writer'",
  );
  const serverTimes = () => ({
    all: timeWithChildren(server.pid()),
    turn: sum(writers, ({ pid }) => timeWithChildren(Number(pid))),
  });
  const measure = async (services: readonly Server[]): Promise<SharedIntake> => {
    const followers = instances.filter((instance) => !services.includes(instance));
    const before = { ...serverTimes(), followers: followers.map(({ pid }) => processorTimeOf(pid)) };
    const loads = await Promise.all(services.map((service) => measureClicks(service, seconds)));
    const requests = sum(loads, (load) => load.requests);
    const after = { ...serverTimes(), followers: followers.map(({ pid }) => processorTimeOf(pid)) };
    const each = (time: number) => time / requests;
    const followed = (part: keyof ProcessorTime) =>
      each(sum(after.followers, (time) => time[part]) - sum(before.followers, (time) => time[part])) / followers.length;
    return {
      perSecond: sum(loads, (load) => load.perSecond),
      services: each(sum(loads, (load) => (load.main + load.others) * load.requests)),
      server: each(after.all - before.all),
      turn: each(after.turn - before.turn),
      following: followed("main") + followed("others"),
      followingMain: followed("main"),
      main: each(sum(loads, (load) => load.main * load.requests)),
    };
  };
  const { three, single, file } = await interleave(roundsOf(options), {
    three: () => measure(instances),
    single: () => measure(instances.slice(0, 1)),
    file: () => measure([sqlite]),
  });
  options.note(`the client is ${CLIENT}, one an instance; clients, services and the server share the machine`);
  options.note("what cores allow is the least of what request threads and turns have processor time for");
  const row = (what: string, unit: string, part: keyof SharedIntake, ours: typeof single, limit: typeof single) => {
    const values = (measured: typeof single) => measured.map((one) => one[part]);
    return compare(what, unit, values(ours), values(limit));
  };
  const values = (part: keyof SharedIntake) => single.map((one) => one[part]);
  return [
    row("intake of one service on PostgreSQL; limit: on SQLite", "/s", "perSecond", single, file),
    row("the same, processor time of a click in the service", "µs", "services", single, file),
    row("intake of three services on PostgreSQL; limit: of one", "/s", "perSecond", three, single),
    row("the same, processor time of a click in the services", "µs", "services", three, single),
    row("the same, processor time of a click in the server", "µs", "server", three, single),
    row("of it, while others wait for their turn", "µs", "turn", three, single),
    compare(
      "processor time of another service's click; limit: of its own",
      "µs",
      values("following"),
      values("services"),
    ),
    compare("the same, of the request thread", "µs", values("followingMain"), values("main")),
    compare(
      "intake that a core for each thread allows three services; limit: one",
      "/s",
      single.map((one, round) => allowed(INSTANCES, one, three[round]!.turn)),
      single.map((one) => allowed(1, one, one.turn)),
      atLeast(1.3),
    ),
  ];
};

/**
 * Returns the clicks a second that `services` services could accept, limited by the processor time of their request
 * threads and of the server's appends. Each service also reads the clicks of the others.
 */
function allowed(services: number, { main, followingMain }: SharedIntake, turn: number): number {
  const thread = (main + (services - 1) * followingMain) / services;
  return 1_000_000 / Math.max(thread, turn);
}

const KEY = Buffer.alloc(32, 7).toString("base64");

function sum<Load>(loads: readonly Load[], part: (load: Load) => number): number {
  return loads.reduce((total, load) => total + part(load), 0);
}
