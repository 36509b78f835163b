import { join } from "node:path";
import { startChild } from "eventstore-lite/bench";
import { saidBy } from "./start-service-process.ts";

export interface Redis extends AsyncDisposable {
  readonly socket: string;
  readonly pid: number;
}

/**
 * Starts a Redis that syncs before it answers, with otherwise default settings. Its files and its socket are in the
 * folder. Throws if Redis is not installed.
 */
export async function startRedis(folder: string): Promise<Redis> {
  const program = Bun.which("redis-server");
  if (program === null) throw new Error("redis-server is not installed");
  const socket = join(folder, "redis.sock");
  const settings = { port: "0", unixsocket: socket, dir: folder, appendonly: "yes", appendfsync: "always", save: "" };
  const child = startChild([program, ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])]);
  const stop = async (): Promise<void> => {
    child.kill();
    await child.exited;
  };
  try {
    await saidBy(child.stdout, /ready to accept connections/);
    return { socket, pid: child.pid, [Symbol.asyncDispose]: stop };
  } catch (fault) {
    await stop();
    throw fault;
  }
}
