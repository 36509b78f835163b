import { expect, test } from "bun:test";
import { openDatabase } from "eventstore-lite/postgres";
import { newDatabase } from "eventstore-lite/testing";
import { CLICK } from "../harness/sample-click.ts";
import { ended, exported, openInstallation, stop, untilListening, type Installation } from "../harness/process.ts";

const KEY = { REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") };
const EXIT_FAULT = 70;
const EXIT_CONFIG = 78;

async function ask(url: string, query: string): Promise<readonly Record<string, unknown>[]> {
  const database = openDatabase({ url, connections: 1, name: "test" });
  try {
    return await database.run((sql) => sql.unsafe(query));
  } finally {
    await database.close();
  }
}

/** Creates a log on a server, with two recipients and a backup. */
async function openOnServer() {
  const world = await openInstallation();
  const url = await newDatabase();
  Object.assign(world.env, KEY, { DATABASE_URL: url });
  const row = "username,basis\nada_builds,opt_in\nbob_builds,opt_in\n";
  await world.execute("recipients", "import", world.file("people.csv", row));
  const monday = `${world.directory}/monday`;
  expect(await world.execute("backup", monday)).toMatchObject({ code: 0 });
  return { world, url, monday, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

const loseLog = (url: string) => ask(url, "DROP SCHEMA eventstore CASCADE");
const peopleOf = async (world: Installation): Promise<string> =>
  (await world.execute("recipients", "list", "--json")).out;

/** Returns the number of clicks in the log whose personal data can be decrypted. */
async function readableClicks(world: Installation): Promise<number> {
  const clicks = (await exported(world)).filter(({ type }) => type === "LinkClicked");
  return clicks.filter(({ meta }) => meta["erased"] !== true).length;
}

test("a restore on PostgreSQL after a lost log keeps a forgotten recipient forgotten", async () => {
  await using place = await openOnServer();
  const { world, url, monday } = place;
  const service = await world.serve();
  expect(await world.execute("recipients", "forget", "ada_builds", "--yes")).toMatchObject({ code: 0 });
  expect(await stop(service)).toBe(0);
  await loseLog(url);

  const refused = await ended(world.start(["serve"]));
  expect([refused.code, refused.err]).toEqual([EXIT_CONFIG, expect.stringMatching(/is gone from .*reachlog restore/)]);
  const found = await world.execute("doctor");
  expect([found.code, found.out]).toEqual([1, expect.stringContaining("is gone from")]);
  expect(await ask(url, "SELECT FROM pg_namespace WHERE nspname = 'eventstore'")).toHaveLength(0);

  expect(await world.execute("restore", monday)).toMatchObject({ code: 0 });
  expect(await stop(await world.serve())).toBe(0);
  const again = "username,basis\nada_builds,opt_in\ncas_builds,opt_in\n";
  await world.execute("recipients", "import", world.file("again.csv", again));
  const people = await peopleOf(world);
  expect(["ada_builds", "bob_builds", "cas_builds"].filter((name) => people.includes(name))).toEqual([
    "bob_builds",
    "cas_builds",
  ]);
  console.log("the log's schema lost: serve 78, doctor 1, restored: forgotten stays forgotten");
});

test("a restore drill on PostgreSQL with the live keys is refused, unless it takes them over", async () => {
  await using place = await openOnServer();
  const { world, url, monday } = place;
  const live = await world.serve();
  const click = async (): Promise<number> => (await live.post("/api/tracking/event", CLICK)).status;
  expect(await click()).toBe(202);
  const drill = { DATABASE_URL: await newDatabase(), KEYS_DATABASE_URL: url };
  const restore = (...args: string[]) => ended(world.start(["restore", monday, ...args], drill));
  const refused = await restore();
  expect([refused.code, refused.err]).toEqual([EXIT_CONFIG, expect.stringContaining("--take-over-keys")]);
  expect(await click()).toBe(202);
  expect(await readableClicks(world)).toBe(2);
  expect(await world.execute("backup", `${world.directory}/tuesday`)).toMatchObject({ code: 0 });
  expect(await world.execute("doctor")).toMatchObject({ code: 0 });

  expect(await restore("--take-over-keys")).toMatchObject({ code: 0 });
  // The service notices that its keys were taken over when it encrypts the next click, and ends.
  const [answer, code] = await Promise.all([click().catch(() => 0), live.process.exited]);
  expect(answer).not.toBe(202);
  expect(code).toBe(EXIT_FAULT);
  expect(live.log()).toContain("was taken over by the log");
  const again = await ended(world.start(["serve"]));
  expect([again.code, again.err]).toEqual([EXIT_CONFIG, expect.stringContaining("--take-over-keys")]);
  console.log("a drill with the live keys: refused, 0 clicks unreadable; taken over: the live service ended with 70");
});

test("a start on PostgreSQL refuses an older dump that is shorter than its checkpoint", async () => {
  await using place = await openOnServer();
  const { world, url } = place;
  // Creates what a dump of the schema would contain: copies of all its tables at one moment.
  const tables = await ask(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'eventstore'");
  const names = tables.map(({ tablename }) => String(tablename));
  await ask(
    url,
    `CREATE SCHEMA dump; ${names.map((name) => `CREATE TABLE dump.${name} AS TABLE eventstore.${name}`).join(";")}`,
  );
  const held = await exported(world);
  const service = await world.serve();
  for (let n = 0; n < 3; n++) expect((await service.post("/api/tracking/event", CLICK)).status).toBe(202);
  expect(await stop(service)).toBe(0);
  const putBack = names.map(
    (name) => `DELETE FROM eventstore.${name};
      INSERT INTO eventstore.${name} OVERRIDING SYSTEM VALUE SELECT * FROM dump.${name}`,
  );
  await ask(url, `BEGIN; SET LOCAL session_replication_role = replica; ${putBack.join(";")}; COMMIT`);
  const refused = await ended(world.start(["serve"]));
  expect([refused.code, refused.err]).toEqual([
    EXIT_CONFIG,
    expect.stringMatching(/the log ends at position \d+, but the checkpoint in the vault knew \d+ events/),
  ]);
  expect(await stop(await untilListening(world.start(["serve", "--accept-loss"])))).toBe(0);
  expect((await exported(world)).slice(0, held.length)).toEqual(held);
  console.log("an older dump of the log's schema: serve 78, it is shorter than its checkpoint; what it held is there");
});
