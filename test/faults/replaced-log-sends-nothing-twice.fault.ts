import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beginPostgresEpoch, openDatabase } from "eventstore-lite/postgres";
import { startPostgres, type PostgresServer } from "eventstore-lite/testing";
import { authorize, BEARER, exported, kill, openInstallation, stop, type Installation } from "../harness/process.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { installedPostgres } from "./postgres-primary-and-standby.ts";

/**
 * Daily limit of messages. There are twice as many recipients, so half of them get their message only on the next day.
 */
const LIMIT = 5;

const EXIT_BUSY = 75;
const EXIT_FAULT = 70;

/**
 * A log on a server, with an account that may send and recipients; no message was sent yet, and the service is stopped.
 */
async function openPrepared(server: PostgresServer): Promise<Installation> {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await openInstallation());
  Object.assign(world.env, {
    DATABASE_URL: await server.newDatabase(),
    REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
    DAILY_LIMIT: String(LIMIT),
  });
  await addPeople(world, 2 * LIMIT);
  const service = await world.serve();
  await authorize(service, world.sandbox);
  expect(await stop(service)).toBe(0);
  stack.move();
  return world;
}

/** Starts a service, which runs the outreach agent once and then stops. */
async function run(world: Installation): Promise<unknown> {
  const service = await world.serve();
  const answer = await service.post("/social/run", {}, { prefer: "wait=300", ...BEARER });
  const { reason, sent } = (await answer.json()) as Record<string, unknown>;
  expect(await stop(service)).toBe(0);
  return { reason, sent };
}

const causesOf = async (world: Installation): Promise<unknown[]> =>
  (await exported(world)).filter(({ type }) => type === "LogRestored").map(({ data }) => data["cause"]);

/**
 * The log was replaced by a copy from before today's messages. Expects that the service notices this and does not send
 * a second quota on the same day.
 */
async function expectNoSecondDay(world: Installation, cause: string, name: string): Promise<void> {
  expect(await run(world)).toEqual({ reason: "log_restored", sent: 0 });
  const causes = await causesOf(world);
  const arrived = arrivals(world);
  console.log(
    `${name}: messages ${arrived.people}, at most ${arrived.mostToOne} to one, restores told ${causes.length}`,
  );
  expect({ ...arrived, causes }).toEqual({ people: LIMIT, mostToOne: 1, causes: [cause] });
}

const SENT = { reason: "daily_limit_reached", sent: LIMIT };

const nameOf = ({ env }: Installation): string => new URL(env["DATABASE_URL"]!).pathname.slice(1);

async function dataOf(server: PostgresServer): Promise<string> {
  const [setting] = await server.ask("SHOW data_directory");
  return String(setting?.["data_directory"]);
}

test("a restore is refused while a service runs and accepted once it is killed", async () => {
  await using server = await startPostgres();
  await using world = await openPrepared(server);
  const backup = join(world.directory, "backup");
  expect(await world.execute("backup", backup)).toMatchObject({ code: 0 });
  const file = join(world.directory, "log.jsonl");
  expect(await world.execute("audit", "export", "--encrypted", "--out", file)).toMatchObject({ code: 0 });
  expect(await run(world)).toEqual(SENT);

  // The database is lost, and the supervisor restarts the service on an empty one.
  world.env["DATABASE_URL"] = await server.newDatabase();
  const service = await world.serve();
  for (const args of [
    ["audit", "import", file],
    ["restore", backup],
  ]) {
    const refused = await world.execute(...args);
    expect([refused.code, refused.err]).toEqual([EXIT_BUSY, expect.stringContaining(`the service at ${service.url}`)]);
  }
  await kill(service);
  // The killed service's log has no events, and its vault would stop the restore, so the operator removes the vault.
  // The restore must detect that the service is dead.
  const database = openDatabase({ url: world.env["DATABASE_URL"], connections: 1, name: "test" });
  await database.run((sql) => sql`DROP SCHEMA reachlog_vault CASCADE`);
  await database.close();
  expect(await world.execute("restore", backup)).toMatchObject({ code: 0 });
  await expectNoSecondDay(world, "restore", "restored on a server after its service was killed");
});

test("a new epoch ends the running service, which appends nothing more", async () => {
  await using server = await startPostgres();
  await using world = await openPrepared(server);
  const service = await world.serve();
  const refused = await world.execute("restored");
  expect([refused.code, refused.err]).toEqual([EXIT_BUSY, expect.stringContaining(`the service at ${service.url}`)]);
  await beginPostgresEpoch({ url: world.env["DATABASE_URL"]!, schema: "eventstore" }, "operator");
  const before = (await exported(world)).length;
  expect(await service.process.exited).toBe(EXIT_FAULT);
  expect(service.log()).toContain("this instance's log was replaced or restored");
  expect((await exported(world)).length).toBe(before);
  expect(await run(world)).toEqual({ reason: "log_restored", sent: 0 });
  expect(await causesOf(world)).toEqual(["operator"]);
});

test("a template copy in the log's place causes no second message and no second quota", async () => {
  await using server = await startPostgres();
  await using world = await openPrepared(server);
  await server.ask(`CREATE DATABASE copy TEMPLATE ${nameOf(world)}`);
  expect(await run(world)).toEqual(SENT);
  world.env["DATABASE_URL"] = server.url("copy");
  await expectNoSecondDay(world, "copy", "a template copy");
});

test("copied server files that are put back cause no second message and no second quota", async () => {
  await using server = await startPostgres();
  await using world = await openPrepared(server);
  const data = await dataOf(server);
  await server.stop("fast");
  execFileSync("cp", ["-a", data, `${data}.copy`]);
  await server.start();
  expect(await run(world)).toEqual(SENT);
  await server.stop("fast");
  rmSync(data, { recursive: true });
  renameSync(`${data}.copy`, data);
  await server.start();
  await expectNoSecondDay(world, "copy", "a server's copied files");
});

if (installedPostgres === undefined) {
  console.log("not run, since no PostgreSQL is installed (Debian: apt-get install postgresql): dumps and base backups");
}

test.skipIf(installedPostgres === undefined)(
  "a dump that is put back causes no second message and no second quota",
  async () => {
    await using server = await startPostgres({ programs: installedPostgres! });
    await using world = await openPrepared(server);
    const url = world.env["DATABASE_URL"]!;
    const schemas = ["eventstore", "reachlog_vault"];
    const dump = join(world.directory, "dump.sql");
    execFileSync(join(installedPostgres!, "pg_dump"), ["-f", dump, ...schemas.flatMap((name) => ["-n", name]), url]);
    expect(await run(world)).toEqual(SENT);
    const psql = (...args: string[]): unknown =>
      execFileSync(join(installedPostgres!, "psql"), ["-q", "-v", "ON_ERROR_STOP=1", ...args, url], {
        stdio: "ignore",
      });
    psql("-c", `DROP SCHEMA ${schemas.join(", ")} CASCADE`);
    psql("-f", dump);
    await expectNoSecondDay(world, "copy", "a dump that was put back");
  },
);

test.skipIf(installedPostgres === undefined)(
  "a recovered base backup causes no second message and no second quota",
  async () => {
    const options = {
      programs: installedPostgres!,
      settings: { wal_level: "replica", max_wal_senders: "4", hot_standby: "on" },
    };
    await using server = await startPostgres(options);
    await using world = await openPrepared(server);
    await using recovered = await startPostgres({ ...options, standbyOf: server });
    await recovered.ask("ALTER SYSTEM SET primary_conninfo = ''");
    await recovered.ask("SELECT pg_reload_conf()");
    const url = recovered.url(nameOf(world));
    while ((await server.ask("SELECT FROM pg_stat_replication")).length > 0);
    expect(await run(world)).toEqual(SENT);
    await server.stop("fast");
    await recovered.ask("SELECT pg_promote()");
    world.env["DATABASE_URL"] = url;
    await expectNoSecondDay(world, "copy", "a base backup that was recovered");
  },
);
