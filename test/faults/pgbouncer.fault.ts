import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "eventstore-lite/testing";
import { findFreePort } from "../../src/platform/free-port.ts";
import { BEARER, ended, openInstallation, stop, until } from "../harness/process.ts";
import { click } from "./click-load.ts";
import { has } from "./required-tools.ts";
import { lossesOf } from "./expect-whole-log.ts";

const EXIT_UNAVAILABLE = 75;
const EXIT_CONFIG = 78;

const CLICKS = 50;

const isMissing = !has("pgbouncer");
/** First version of PgBouncer that lets clients use prepared statements in transaction mode. */
const PREPARES_FROM = 1.21;
const version = isMissing
  ? 0
  : Number(/PgBouncer (\d+\.\d+)/.exec(Bun.spawnSync(["pgbouncer", "--version"]).stdout.toString())?.[1]);
const isTooOld = version < PREPARES_FROM;

/** Finds the start-up parameters that PgBouncer must ignore, as docs/postgresql.md lists them. */
const IGNORED = /`ignore_startup_parameters = (.+?)`/
  .exec(readFileSync(join(import.meta.dirname, "../../docs/postgresql.md"), "utf8"))![1]!
  .split(", ");

interface PoolOptions {
  readonly mode: "session" | "transaction";
  readonly ignored: readonly string[];
}

/**
 * Starts a PostgreSQL server with a pgbouncer in front of it, and opens an installation whose log is reached through
 * the pgbouncer.
 */
async function openWorld({ mode, ignored }: PoolOptions) {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startPostgres());
  const database = new URL(await server.newDatabase()).pathname.slice(1);
  const folder = mkdtempSync(join(tmpdir(), "reachlog-pgbouncer-"));
  stack.defer(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  const port = await findFreePort("127.0.0.1");
  const settings = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "any",
    pool_mode: mode,
    ignore_startup_parameters: ignored.join(", "),
    ...(isTooOld ? {} : { max_prepared_statements: 100 }),
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const file = join(folder, "pgbouncer.ini");
  const target = `${database} = host=127.0.0.1 port=${server.port} user=postgres`;
  writeFileSync(file, ["[databases]", target, "[pgbouncer]", ...lines, ""].join("\n"));
  // pgbouncer refuses to run as root.
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const pool = Bun.spawn(["pgbouncer", "-q", ...user, file], { stdio: ["ignore", "ignore", "ignore"] });
  stack.defer(async () => {
    pool.kill("SIGKILL");
    await pool.exited;
  });
  await until(
    () => isListening(port),
    (listens) => listens,
  );
  const world = stack.use(await openInstallation());
  Object.assign(world.env, {
    DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/${database}`,
    REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
  });
  const opened = stack.move();
  return { world, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function isListening(port: number): Promise<boolean> {
  return Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } }).then(
    (socket) => {
      socket.end();
      return true;
    },
    () => false,
  );
}

/** Starts two services behind PgBouncer and expects that both record clicks at the same time. */
async function expectToServe(mode: PoolOptions["mode"]): Promise<void> {
  await using opened = await openWorld({ mode, ignored: IGNORED });
  const { world } = opened;
  const services = [await world.serve(), await world.serve()];
  const acknowledged = new Set<string>();
  for (let number = 0; number < CLICKS; number++) {
    const answers = await Promise.all(services.map(({ post }) => post("/api/tracking/event", click(number), BEARER)));
    for (const answer of answers) {
      expect(answer.status).toBe(202);
      acknowledged.add(((await answer.json()) as { id: string }).id);
    }
  }
  expect(await Promise.all(services.map(stop))).toEqual([0, 0]);
  expect(await lossesOf(world, acknowledged)).toEqual({ lost: [], doubled: [] });
  console.log(`pgbouncer ${version} in ${mode} mode: ${acknowledged.size} clicks of two instances, lost 0, doubled 0`);
}

test.skipIf(isMissing)("instances serve behind a pgbouncer in session mode with the documented parameters", () =>
  expectToServe("session"),
);

test.skipIf(isMissing)("a start behind a pgbouncer without one of these parameters is refused", async () => {
  for (const left of IGNORED) {
    await using opened = await openWorld({ mode: "session", ignored: IGNORED.filter((name) => name !== left) });
    const refused = await ended(opened.world.start(["serve"]));
    expect([refused.code, refused.err]).toEqual([EXIT_UNAVAILABLE, expect.stringContaining("does not answer")]);
  }
});

test.skipIf(isMissing || isTooOld)(
  "instances serve behind a pgbouncer in transaction mode with prepared statements",
  () => expectToServe("transaction"),
);

test.skipIf(isMissing || !isTooOld)(
  "a start behind a pgbouncer in transaction mode without prepared statements is refused",
  async () => {
    await using opened = await openWorld({ mode: "transaction", ignored: IGNORED });
    const refused = await ended(opened.world.start(["serve"]));
    expect([refused.code, refused.err]).toEqual([EXIT_CONFIG, expect.stringContaining("max_prepared_statements")]);
  },
);
