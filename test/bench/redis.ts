import { join } from "node:path";
import { startChild } from "eventstore-lite/bench/child";
import { saidBy } from "./server.ts";

export interface Redis extends AsyncDisposable {
  readonly socket: string;
  readonly pid: number;
}

/**
 * A Redis that answers when what it answers about was synced, and whose other settings are its own defaults. Its files
 * and its socket lie in the folder. Throws where Redis is not installed.
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
