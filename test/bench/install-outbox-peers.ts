import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputOf } from "eventstore-lite/bench";
import { startRedis } from "./start-redis.ts";
import { startServer, type Server } from "./start-service-process.ts";

/** Running program that accepts clicks and delivers them, compared with others. */
export interface Contender extends Server {
  /** Process ids of the program, including the process that listens. */
  readonly pids: readonly number[];
}

export interface Peer {
  readonly name: string;
  /** Starts the program that the benchmark compares with the service, in a folder that no other program uses. */
  start(folder: string, sinks: string): Promise<Contender>;
}

/**
 * Installs into the folder `home` a program that the benchmark compares with reachlog. Throws if a required program is
 * missing.
 */
export type Install = (home: string) => Promise<Peer>;

/**
 * Packages of the compared outboxes, with pinned versions so that results stay comparable. This version of
 * better-sqlite3 is of the last release line that runs on Node 20.
 */
const FASTIFY = { fastify: "5.12.8" };
const SQLITE = { ...FASTIFY, "better-sqlite3": "12.11.1" };
const BULLMQ = { ...FASTIFY, bullmq: "6.7.0", ioredis: "6.0.0" };

/**
 * Installs an outbox on better-sqlite3 that could be written in a day. The package's native module may have to be
 * compiled, which takes a minute.
 */
export const installSqliteOutbox: Install = async (home) => {
  const program = await installProgram("outbox-peer-sqlite", SQLITE, home);
  return {
    name: "fastify + better-sqlite3",
    async start(folder, sinks) {
      return alone(await startServer(["node", program, join(folder, "outbox.sqlite"), sinks], folder, {}));
    },
  };
};

/** Installs the outbox of a team on Node, with BullMQ. Redis is the system's, so its version is not pinned. */
export const installBullMq: Install = async (home) => {
  if (Bun.which("redis-server") === null) throw new Error("redis-server is not installed");
  const program = await installProgram("outbox-peer-bullmq", BULLMQ, home);
  const version = /v=(\S+)/.exec(await outputOf(["redis-server", "--version"]))?.[1] ?? "";
  return {
    name: `fastify + BullMQ on Redis ${version}`,
    async start(folder, sinks) {
      await using starting = new AsyncDisposableStack();
      const redis = starting.use(await startRedis(folder));
      const server = starting.use(await startServer(["node", program, redis.socket, sinks], folder, {}));
      const stack = starting.move();
      return { ...server, pids: [server.pid, redis.pid], [Symbol.asyncDispose]: () => stack.disposeAsync() };
    },
  };
};

export function alone(server: Server): Contender {
  return { ...server, pids: [server.pid] };
}

/** Installs the dependencies of a program into a folder and compiles the program there for Node. Returns its path. */
async function installProgram(name: string, dependencies: object, home: string): Promise<string> {
  if (Bun.which("node") === null || Bun.which("npm") === null) throw new Error("node and npm are not installed");
  writeFileSync(join(home, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }));
  await outputOf(["npm", "install", "--no-audit", "--no-fund"], { cwd: home });
  const entrypoints = [join(import.meta.dirname, `${name}.ts`)];
  await Bun.build({ entrypoints, target: "node", outdir: home });
  return join(home, `${name}.js`);
}
