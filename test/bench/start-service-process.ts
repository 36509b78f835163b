import { dirname, join } from "node:path";
import { startChild } from "eventstore-lite/bench";

const ROOT = join(import.meta.dirname, "../..");

/** A server in a separate process. Disposing it stops it in order and waits until it exits. */
export interface Server extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
}

/** Starts `reachlog serve` on a log. Without settings it has no networks and dispatches nothing. */
export function startService(log: string, settings: Readonly<Record<string, string>> = {}): Promise<Server> {
  return startServiceOn(`sqlite:${log}`, dirname(log), settings);
}

/** Starts `reachlog serve` on a log at any address, in a file or on a database server. */
export function startServiceOn(
  address: string,
  cwd: string,
  settings: Readonly<Record<string, string>>,
): Promise<Server> {
  const command = [process.execPath, join(ROOT, "src/main.ts"), "serve"];
  return startServer(command, cwd, { DATABASE_URL: address, ...settings });
}

/**
 * Starts the service without one of its parts: a preloaded file removes the part from the source. The difference from
 * the complete service is the part's cost.
 */
export function startWithout(part: "encryption" | "metrics" | "traces" | "tree", log: string): Promise<Server> {
  return startPreloaded([`preload-without-${part}.ts`], log);
}

/**
 * Starts the complete service with a preloaded module too, so that it can be compared with one without a part: a
 * preload costs some percent of processor time.
 */
export function startUnchanged(log: string): Promise<Server> {
  return startPreloaded(["preload-that-changes-nothing.ts"], log);
}

/** Service process that measures the stalls of its own event loop. */
export interface WatchedServer extends Server {
  readonly log: string;
  /** Path of the file to which stall-watch.ts writes the stalls. */
  readonly stallsFile: string;
  /** API token for the routes that always require one. */
  readonly token: string;
}

export async function startWatched(log: string, without?: "snapshots"): Promise<WatchedServer> {
  const modules = ["stall-watch.ts", ...(without === undefined ? [] : [`preload-without-${without}.ts`])];
  const stallsFile = `${log}-stalls.json`;
  const token = crypto.randomUUID();
  const settings = { STALLS_FILE: stallsFile, API_TOKENS: `bench:${token}` };
  return { ...(await startPreloaded(modules, log, settings)), log, stallsFile, token };
}

function startPreloaded(
  modules: readonly string[],
  log: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const preloads = modules.flatMap((module) => ["--preload", join(import.meta.dirname, module)]);
  const command = [process.execPath, ...preloads, join(ROOT, "src/main.ts"), "serve"];
  return startServer(command, dirname(log), { DATABASE_URL: `sqlite:${log}`, ...settings });
}

/** Starts a server with the routes of server-without-storage.ts. It stores nothing, so any folder will do. */
export function startBareRoute(directory: string): Promise<Server> {
  return startServer([process.execPath, join(import.meta.dirname, "server-without-storage.ts")], directory, {});
}

/** Starts a server in a folder without a .env file, and without the settings of the developer. */
export async function startServer(
  command: readonly string[],
  cwd: string,
  settings: Readonly<Record<string, string>>,
): Promise<Server> {
  const env = { PATH: process.env["PATH"] ?? "", PORT: "0", ...settings };
  const child = startChild(command, { cwd, env });
  const stop = async (): Promise<void> => {
    child.kill();
    await child.exited;
  };
  try {
    const [, url = ""] = await saidBy(child.stderr, LISTENING);
    return { url, pid: child.pid, [Symbol.asyncDispose]: stop };
  } catch (fault) {
    await stop();
    throw fault;
  }
}

/** All servers log their address to stderr as a JSON line with a `url`. */
const LISTENING = /"url":"([^"]+)"/;

/** Waits until a process has written text that matches `wanted`. Throws with the process's output if it ends before. */
export function saidBy(output: ReadableStream<Uint8Array<ArrayBuffer>>, wanted: RegExp): Promise<RegExpExecArray> {
  let seen = "";
  const said = Promise.withResolvers<RegExpExecArray>();
  // The output is read to its end, because a server with much output would otherwise block.
  void (async () => {
    for await (const chunk of output.pipeThrough(new TextDecoderStream())) {
      if (seen.length < 10_000) seen += chunk;
      const match = wanted.exec(seen);
      if (match !== null) said.resolve(match);
    }
    said.reject(new Error(`a server did not start: ${seen}`));
  })();
  return said.promise;
}
