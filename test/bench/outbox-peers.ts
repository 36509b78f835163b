import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputOf } from "eventstore-lite/bench/child";
import { startRedis } from "./redis.ts";
import { startServer, type Server } from "./server.ts";

/** What takes clicks and delivers them. */
export interface Contender extends Server {
  /** All its processes, the one that listens among them. */
  readonly pids: readonly number[];
}

export interface Peer {
  readonly name: string;
  /** In a folder of its own, which no other program uses. */
  start(folder: string, sinks: string): Promise<Contender>;
}

/** Puts a peer into a folder of its own. Throws where something that it needs is not to be had. */
export type Install = (home: string) => Promise<Peer>;

/** Pinned: a figure of "the newest" would say nothing tomorrow. Of better-sqlite3 the last line that runs on Node 20. */
const FASTIFY = { fastify: "5.12.8" };
const SQLITE = { ...FASTIFY, "better-sqlite3": "12.11.1" };
const BULLMQ = { ...FASTIFY, bullmq: "6.7.0", ioredis: "6.0.0" };

/** What one would write in a day. Its native module may be compiled, which takes a minute. */
export const installSqliteOutbox: Install = async (home) => {
  const program = await installProgram("outbox-sqlite", SQLITE, home);
  return {
    name: "fastify + better-sqlite3",
    async start(folder, sinks) {
      return alone(await startServer(["node", program, join(folder, "outbox.sqlite"), sinks], folder, {}));
    },
  };
};

/** What a team on Node takes. Redis is the system's: its version is not ours to pin. */
export const installBullMq: Install = async (home) => {
  if (Bun.which("redis-server") === null) throw new Error("redis-server is not installed");
  const program = await installProgram("outbox-bullmq", BULLMQ, home);
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

/** Installs what a program needs into a folder, and puts it there as JavaScript, for Node. Answers the program. */
async function installProgram(name: string, dependencies: object, home: string): Promise<string> {
  if (Bun.which("node") === null || Bun.which("npm") === null) throw new Error("node and npm are not installed");
  writeFileSync(join(home, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }));
  await outputOf(["npm", "install", "--no-audit", "--no-fund"], { cwd: home });
  const entrypoints = [join(import.meta.dirname, `${name}.ts`)];
  await Bun.build({ entrypoints, target: "node", outdir: home });
  return join(home, `${name}.js`);
}
