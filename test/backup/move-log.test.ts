// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { openDatabase } from "eventstore-lite/postgres";
import { newDatabase } from "eventstore-lite/testing";
import { audit } from "../../src/commands/audit.ts";
import { backup, migrate } from "../../src/commands/backup-migrate-and-archive.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { restoreCommand } from "../../src/commands/restore-and-clock-corrected.ts";
import { contacts, forget, recipients, stats } from "../harness/in-process/operation-commands.ts";
import { loadConfig } from "../../src/config/config.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { openLog } from "../../src/privacy/open-log.ts";
import { capture, type Captured } from "../harness/capture-command.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const NOW = Date.now();
const imported = (id: string, username: string): NewEvent => addedOf({ id, username }, { basis: "dm_first" });
const CLICK: NewEvent = clickOf({ channels: ["ads"], ip: "203.0.113.7" });

let world: CommandHarness;
let place: TemporaryFolder;
let server: Record<string, string>;
beforeEach(async () => {
  // No key is configured, so the command uses a key file.
  world = await openCommands(NOW);
  place = temporaryFolder();
  await world.append(STREAMS.outreach, [imported("101", "ann"), imported("102", "bob"), imported("103", "cas")]);
  await world.append(STREAMS.link("go.example", "x"), [CLICK, CLICK]);
  await world.store.vault.put("token", "canary", 0);
  await world.run(recipients, "suppress", "bob");
  await world.run(forget, "bob", "--yes");
  await world.run(forget, "cas", "--yes");
  server = {
    DATABASE_URL: (await newDatabase()).replace("postgres@", "postgres:hunter2@"),
    REACHLOG_KEY: readFileSync(`${world.directory}/log.key`, "utf8").trim(),
  };
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  place[Symbol.dispose]();
});

/** Writes the settings of a place to a file. */
function settings(env: Record<string, string>): string {
  const file = place.file("next.env");
  writeFileSync(
    file,
    Object.entries(env)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(""),
  );
  return file;
}

const move = (from: Record<string, string>, to: Record<string, string>, signal?: AbortSignal): Promise<Captured> =>
  capture(migrate, [settings(to)], { env: from, ...(signal && { signal }) });
const outOf = async (env: Record<string, string>, command: MakeCommand, ...args: string[]): Promise<string> =>
  (await capture(command, args, { env })).out;
const stateOf = async (env: Record<string, string>) => ({
  exported: await outOf(env, audit, "export"),
  contacts: await outOf(env, contacts, "--json"),
  stats: await outOf(env, stats, "--json"),
});

/** The schemas of the event store on a server. */
async function schemasOf(url: string): Promise<string[]> {
  const database = openDatabase({ url, connections: 1, name: "test" });
  const rows = await database.run((sql) => sql`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'eventstore%'`);
  await database.close();
  return rows.map(({ nspname }) => String(nspname));
}

test("a log moved to PostgreSQL and back has the same events, vault and suppressions", async () => {
  const before = await stateOf(world.env);
  const { position, hash } = await world.store.head();
  const suppression = await world.store.vault.stableKey("suppression");
  const there = await move(world.env, { DATABASE_URL: server["DATABASE_URL"]! });
  expect([there.code, there.out]).toEqual([
    0,
    expect.stringMatching(
      new RegExp(`^${position} events are moved to postgres://127.*whole; head ${position} ${hash}\n$`),
    ),
  ]);
  expect(there.err).toContain("log.key");
  expect(there.out + there.err).not.toContain("hunter2");
  expect(await stateOf(server)).toEqual(before);
  expect(await capture(audit, ["verify"], { env: server })).toMatchObject({
    code: 0,
    out: expect.stringContaining("events of the checkpoint in the vault"),
  });

  const file = { DATABASE_URL: `sqlite:${place.file("back/log.sqlite")}`, REACHLOG_KEY: server["REACHLOG_KEY"]! };
  expect(await move(server, { DATABASE_URL: file.DATABASE_URL })).toMatchObject({ code: 0 });
  expect(await stateOf(file)).toEqual(before);
  expect(await capture(audit, ["verify"], { env: file })).toMatchObject({ code: 0 });
  {
    await using log = await openLog(loadConfig(file, () => ""));
    expect([log.id, log.begunAs, (await log.head()).hash]).toEqual([world.store.id, "backup", hash]);
    expect([(await log.vault.get("token"))?.value, await log.vault.stableKey("suppression")]).toEqual([
      "canary",
      suppression,
    ]);
  }
  // The opt-out of the forgotten recipient still applies to an import, although none of their personal data remains.
  const list = place.file("people.csv");
  writeFileSync(list, "id,username,basis\n102,bob,opt_in\n104,dan,opt_in\n");
  await capture(recipients, ["import", list], { env: file });
  const people = await outOf(file, contacts, "--json");
  expect(people).toContain('"dan"');
  expect(people).not.toContain('"bob"');
  expect(readdirSync(place.file("back")).filter((name) => name.startsWith("reachlog-"))).toEqual([]);
});

test("migrate refuses a place with a log or secrets, and another master key", async () => {
  const other = { ...server, REACHLOG_KEY: Buffer.alloc(32, 9).toString("hex") };
  const refused = (to: Record<string, string>): Promise<unknown> =>
    move(world.env, to).catch((fault: unknown) => fault);
  expect(await refused({ PORT: "1" })).toMatchObject({ kind: "usage" });
  expect(await refused(other)).toMatchObject({
    kind: "configuration",
    message: expect.stringContaining("another master key"),
  });
  {
    await using log = await openLog(loadConfig(other, () => ""));
    void log;
  }
  // The target contains a log without events, and a vault that belongs to another master key.
  expect(await refused(server)).toMatchObject({ kind: "conflict" });
  const used = { ...server, DATABASE_URL: await newDatabase() };
  await move(world.env, used);
  expect(await refused(used)).toMatchObject({ kind: "conflict", message: expect.stringContaining("holds 8 events") });
  expect(await refused(world.env)).toMatchObject({ kind: "conflict" });
});

test("an interrupted migration leaves no log in the new place, and can be repeated", async () => {
  const interrupt = new AbortController();
  interrupt.abort(130);
  const before = await stateOf(world.env);
  const refusal = await move(world.env, server, interrupt.signal).catch((fault: unknown) => fault);
  expect(refusal).toMatchObject({ kind: "busy" });
  expect(await schemasOf(server["DATABASE_URL"]!)).toEqual([]);
  expect(readdirSync(world.directory).filter((name) => name.startsWith("reachlog-"))).toEqual([]);
  expect(await stateOf(world.env)).toEqual(before);
  expect(await move(world.env, server)).toMatchObject({ code: 0 });
});

test("a migration can be repeated after a kill between the secrets and the log", async () => {
  expect(await move(world.env, server)).toMatchObject({ code: 0 });
  const database = openDatabase({ url: server["DATABASE_URL"]!, connections: 1, name: "test" });
  await database.run((sql) => sql`DROP SCHEMA eventstore CASCADE`);
  await database.close();
  expect(await move(world.env, server)).toMatchObject({ code: 0 });
  expect(await stateOf(server)).toEqual(await stateOf(world.env));
});

test("a backup of a log in a file is restored to PostgreSQL, and the reverse", async () => {
  const before = await stateOf(world.env);
  await world.run(backup, place.file("one"));
  expect(await capture(restoreCommand, [place.file("one")], { env: server })).toMatchObject({ code: 0 });
  expect(await stateOf(server)).toEqual(before);
  expect(await capture(backup, [place.file("two")], { env: server })).toMatchObject({ code: 0 });
  const file = { ...server, DATABASE_URL: `sqlite:${place.file("again/log.sqlite")}` };
  expect(await capture(restoreCommand, [place.file("two"), "--rehearse"], { env: file })).toMatchObject({ code: 0 });
  expect(existsSync(place.file("again"))).toBe(false);
  expect(await capture(restoreCommand, [place.file("two")], { env: file })).toMatchObject({ code: 0 });
  expect(await stateOf(file)).toEqual(before);
});
