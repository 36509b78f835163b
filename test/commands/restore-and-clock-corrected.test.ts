// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "eventstore-lite/postgres";
import { newDatabase } from "eventstore-lite/testing";
import { audit } from "../../src/commands/audit.ts";
import { backup } from "../../src/commands/backup-migrate-and-archive.ts";
import { readManifest } from "../../src/backup/manifest.ts";
import { doctor } from "../../src/commands/doctor.ts";
import { restoreCommand } from "../../src/commands/restore-and-clock-corrected.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { keysIn } from "../../src/privacy/key-store.ts";
import { locateLog } from "../../src/privacy/locate-log.ts";
import { openLog } from "../../src/privacy/open-log.ts";
import { openSecretStore } from "../../src/vault/secret-store.ts";
import { capture, type Captured, withLog } from "../harness/capture-command.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";
import { contacts, forget, recipients } from "../harness/in-process/operation-commands.ts";

const REACHLOG_KEY = Buffer.alloc(32, 7).toString("base64");

type Env = Record<string, string>;

/** Kind of place where a log can be, with its keys and vault: files, or a PostgreSQL server. */
interface Engine {
  /** Returns the settings of a new, empty place. */
  make(folder: TemporaryFolder): Promise<Env>;
  /**
   * Returns the settings of a new, empty place that uses the keys of the place `live`, for a rehearsal of a restore.
   */
  drill(folder: TemporaryFolder, live: Env): Promise<Env>;
  /** Removes the log from its place; keys and vault stay. */
  loseLog(env: Env): Promise<void>;
  isLogThere(env: Env): Promise<boolean>;
}

let made = 0;
const fileOf = ({ DATABASE_URL = "" }: Env): string => DATABASE_URL.slice("sqlite:".length);

const FILES: Engine = {
  make: async (folder) => ({ REACHLOG_KEY, DATABASE_URL: `sqlite:${folder.file(`data-${(made += 1)}/log.sqlite`)}` }),
  drill: async (folder, live) => ({ ...(await FILES.make(folder)), KEYS_FILE: logFiles(fileOf(live)).keys }),
  async loseLog(env) {
    for (const end of ["", "-wal", "-shm"]) rmSync(`${fileOf(env)}${end}`, { force: true });
  },
  isLogThere: async (env) => existsSync(fileOf(env)),
};

async function ask(url: string | undefined, query: string): Promise<readonly Record<string, unknown>[]> {
  const database = openDatabase({ url: url ?? "", connections: 1, name: "test" });
  try {
    return await database.run((sql) => sql.unsafe(query));
  } finally {
    await database.close();
  }
}

const SERVER: Engine = {
  make: async () => ({ REACHLOG_KEY, DATABASE_URL: await newDatabase() }),
  drill: async (folder, live) => ({ ...(await SERVER.make(folder)), KEYS_DATABASE_URL: live["DATABASE_URL"] ?? "" }),
  loseLog: async (env) => void (await ask(env["DATABASE_URL"], "DROP SCHEMA eventstore CASCADE")),
  isLogThere: async (env) =>
    (await ask(env["DATABASE_URL"], "SELECT FROM pg_namespace WHERE nspname = 'eventstore'")).length > 0,
};

const configOf = (env: Env) => loadConfig(env, () => "");
const imported = (id: string, username: string): NewEvent => addedOf({ id, username }, { basis: "dm_first" });
const run = (env: Env, command: MakeCommand, ...args: string[]): Promise<Captured> => capture(command, args, { env });
const refusal = (running: Promise<unknown>): Promise<unknown> => running.catch((fault: unknown) => fault);

/** Opens the log at its place and appends events to it. */
const append = (env: Env, stream: string, ...newEvents: NewEvent[]) =>
  withLog(env, (log) => createEventLog(log, () => Bun.randomUUIDv7()).append(stream, newEvents, {}));
const tokenOf = (env: Env) => withLog(env, async ({ vault }) => (await vault.get("token"))?.value);
const putToken = (env: Env, value: string, expected: number) =>
  withLog(env, ({ vault }) => vault.put("token", value, expected));
const peopleOf = async (env: Env): Promise<readonly string[]> =>
  (await run(env, contacts, "--json")).out
    .split("\n")
    .flatMap((line) => (line === "" ? [] : ((JSON.parse(line) as { username: string | null }).username ?? [])));

describe.each([
  ["files", FILES],
  ["PostgreSQL", SERVER],
])("on %s", (_name, engine) => {
  let folder: TemporaryFolder;
  let env: Env;
  let monday: string;
  beforeEach(async () => {
    folder = temporaryFolder();
    env = await engine.make(folder);
    monday = folder.file("monday");
    await append(env, STREAMS.outreach, imported("101", "ann_builds"), imported("102", "bob"));
    await putToken(env, "of monday", 0);
    expect(await run(env, backup, monday)).toMatchObject({ code: 0 });
  });
  afterEach(() => folder[Symbol.dispose]());

  describe("if only the log is lost", () => {
    test("restore keeps the newer keys and vault: a recipient forgotten since stays forgotten", async () => {
      expect(await run(env, forget, "ann_builds", "--yes")).toMatchObject({ code: 0 });
      await putToken(env, "of tuesday", 1);
      await engine.loseLog(env);
      expect(await run(env, restoreCommand, monday)).toMatchObject({ code: 0 });
      expect(await peopleOf(env)).toEqual(["bob"]);
      expect(await tokenOf(env)).toBe("of tuesday");
      const list = folder.file("people.csv");
      writeFileSync(list, "id,username,basis\n101,ann_builds,opt_in\n103,cas,opt_in\n");
      await run(env, recipients, "import", list);
      expect(await peopleOf(env)).toEqual(["bob", "cas"]);
    });

    test("restore without the newer keys brings back a recipient forgotten since the backup", async () => {
      expect(await run(env, forget, "ann_builds", "--yes")).toMatchObject({ code: 0 });
      const elsewhere = await engine.make(folder);
      expect(await run(elsewhere, restoreCommand, monday)).toMatchObject({ code: 0 });
      expect(await peopleOf(elsewhere)).toEqual(["ann_builds", "bob"]);
    });

    test("restore can be repeated after further losses", async () => {
      for (const _time of [1, 2]) {
        await engine.loseLog(env);
        expect(await run(env, restoreCommand, monday)).toMatchObject({ code: 0 });
        expect(await peopleOf(env)).toEqual(["ann_builds", "bob"]);
        await append(env, STREAMS.outreach, imported("103", "cas"));
      }
    });

    test("restore completes older keys with those of the backup", async () => {
      const older = await keysOf(env);
      await append(env, STREAMS.outreach, imported("103", "cas"));
      await run(env, forget, "bob", "--yes");
      const tuesday = folder.file("tuesday");
      expect(await run(env, backup, tuesday)).toMatchObject({ code: 0 });
      await engine.loseLog(env);
      await putKeys(env, older);
      expect(await run(env, restoreCommand, tuesday)).toMatchObject({ code: 0 });
      expect(await peopleOf(env)).toEqual(["ann_builds", "cas"]);
    });

    test("restore refuses an older copy of the keys that was used since, without --accept-lost-keys", async () => {
      const older = await keysOf(env);
      await append(env, STREAMS.outreach, imported("103", "cas"));
      const tuesday = folder.file("tuesday");
      expect(await run(env, backup, tuesday)).toMatchObject({ code: 0 });
      const { changes } = await keysOf(env);
      await putKeys(env, older);
      for (const id of ["104", "105", "106"]) await append(env, STREAMS.outreach, imported(id, `u${id}`));
      // The backup's keys did not replace the present keys when they were put back, because their count of changes is
      // not higher.
      expect((await keysOf(env)).changes).toBeGreaterThanOrEqual(changes);
      await engine.loseLog(env);
      expect(await refusal(run(env, restoreCommand, tuesday))).toMatchObject({
        kind: "invalid",
        message: expect.stringContaining("1 keys that the log names are missing"),
      });
      expect(await engine.isLogThere(env)).toBe(false);
      expect(await run(env, restoreCommand, tuesday, "--accept-lost-keys")).toMatchObject({ code: 0 });
      expect(await peopleOf(env)).toEqual(["ann_builds", "bob"]);
    });

    test("restore refuses a copy of the keys with another identity", async () => {
      await using secrets = await openSecretStore({
        place: locateLog(configOf(env)).secrets.keys,
        master: Buffer.from(REACHLOG_KEY, "base64"),
      });
      await keysIn(secrets).change(async (keys) => {
        await keys.remove("pepper");
        await keys.put("pepper", Buffer.alloc(32, 1));
      });
      await engine.loseLog(env);
      expect(await refusal(run(env, restoreCommand, monday))).toMatchObject({
        kind: "configuration",
        message: expect.stringContaining("does not belong to this log"),
      });
      expect(await engine.isLogThere(env)).toBe(false);
    });

    test("doctor reports it, and a start needs --accept-loss to begin a new log", async () => {
      await engine.loseLog(env);
      const found = await run(env, doctor);
      expect([found.code, found.out]).toEqual([1, expect.stringMatching(/WRONG   log: .* is gone.*reachlog restore/s)]);
      for (const start of [() => openLog(configOf(env)), () => openLog(configOf(env), { acceptLostKeys: true })])
        expect(await refusal(start())).toMatchObject({
          kind: "configuration",
          message: expect.stringMatching(/is gone.*reachlog restore.*serve --accept-loss/s),
        });
      expect(await engine.isLogThere(env)).toBe(false);
      const id = await withLog(env, async (log) => log.id, { acceptLoss: true });
      expect(await withLog(env, async (log) => log.id)).toBe(id);
    });
  });

  describe("keys that belong to a log at another place", () => {
    let drill: Env;
    beforeEach(async () => {
      drill = await engine.drill(folder, env);
    });

    test("are refused for a restored copy, and the original log works on", async () => {
      expect(await refusal(run(drill, restoreCommand, monday))).toMatchObject({
        kind: "configuration",
        message: expect.stringMatching(/belongs to the log .*KEYS_(?:FILE|DATABASE_URL).*--take-over-keys/s),
      });
      expect(await engine.isLogThere(drill)).toBe(false);
      await append(env, STREAMS.link("go.example", "x"), clickOf({ channels: ["ads"], ip: "203.0.113.7" }));
      expect(await peopleOf(env)).toEqual(["ann_builds", "bob"]);
    });

    test("are refused for another log", async () => {
      expect(await refusal(openLog(configOf(drill)))).toMatchObject({ kind: "configuration" });
      expect(await engine.isLogThere(drill)).toBe(false);
    });

    test("move to the new log on request: the former service stops and cannot start again", async () => {
      await using former = await openLog(configOf(env));
      expect(await run(drill, restoreCommand, monday, "--take-over-keys")).toMatchObject({ code: 0 });
      expect(await peopleOf(drill)).toEqual(["ann_builds", "bob"]);
      const eventLog = createEventLog(former, () => Bun.randomUUIDv7());
      expect(await refusal(eventLog.append(STREAMS.outreach, [imported("103", "cas")], {}))).toBeInstanceOf(Error);
      expect(await former.failed).toMatchObject({ message: expect.stringContaining("was taken over by the log") });
      expect(await refusal(openLog(configOf(env)))).toMatchObject({
        kind: "configuration",
        message: expect.stringContaining("--take-over-keys"),
      });
      expect(await withLog(env, async ({ id }) => id, { takeOverKeys: true })).toBe(former.id);
      expect(await refusal(openLog(configOf(drill)))).toMatchObject({ kind: "configuration" });
    });
  });

  test("a backup and its rehearsal are recorded once in the copied log of a running service", async () => {
    {
      await using service = await openLog(configOf(env), { owner: "a service" });
      const eventLog = createEventLog(service, () => Bun.randomUUIDv7());
      const adding = eventLog.append(STREAMS.outreach, [imported("103", "cas")], {});
      expect(await run(env, backup, folder.file("tuesday"))).toMatchObject({ code: 0 });
      await adding;
      expect(await run(env, restoreCommand, monday, "--rehearse")).toMatchObject({ code: 0, err: "" });
      const { position, hash } = readManifest(monday).log;
      const recorded = await Array.fromAsync(service.read({ types: ["BackupMade", "BackupRehearsed"] }));
      expect(recorded.map(({ type }) => type)).toEqual(["BackupMade", "BackupMade", "BackupRehearsed"]);
      for (const one of [recorded[0], recorded[2]]) expect(one?.data).toMatchObject({ position, hash });
    }
    await engine.loseLog(env);
    const rehearse = () => run(env, restoreCommand, folder.file("tuesday"), "--rehearse");
    expect(await rehearse()).toMatchObject({ code: 0, err: "" });
    expect(await engine.isLogThere(env)).toBe(false);
    await run(env, restoreCommand, monday);
    const others = ["104", "105", "106"].map((id) => imported(id, `u${id}`));
    await append(env, STREAMS.outreach, ...others);
    const { position } = await withLog(env, (log) => log.head());
    expect(await rehearse()).toMatchObject({ code: 0, err: "" });
    expect(await withLog(env, (log) => log.head())).toMatchObject({ position });
  });

  test("doctor and backup report missing keys; restore then needs --accept-lost-keys", async () => {
    const older = await keysOf(env);
    await append(env, STREAMS.outreach, imported("103", "cas"));
    await putKeys(env, older);
    const found = await run(env, doctor);
    expect([found.code, found.out]).toEqual([1, expect.stringMatching(/WRONG   keys: .*1 key.* missing/)]);
    const tuesday = folder.file("tuesday");
    expect(await run(env, backup, tuesday)).toMatchObject({ code: 1, err: expect.stringMatching(/1 key.* missing/) });
    await engine.loseLog(env);
    expect(await refusal(run(env, restoreCommand, tuesday))).toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("--accept-lost-keys"),
    });
    expect(await run(env, restoreCommand, tuesday, "--accept-lost-keys")).toMatchObject({ code: 0 });
    expect(await peopleOf(env)).toEqual(["ann_builds", "bob"]);
  });
});

/** SQL statements by which docs/postgresql.md tells an administrator to grant rights to the service's role. */
const GRANTS = /```sql\n(GRANT USAGE ON SCHEMA eventstore[^`]*)```/.exec(
  readFileSync(join(import.meta.dirname, "../../docs/postgresql.md"), "utf8"),
)![1]!;

const RIGHTS = `
  WITH object AS (
    SELECT nspname AS name, nspacl AS acl FROM pg_namespace WHERE nspname = 'eventstore'
    UNION ALL SELECT relname, relacl FROM pg_class WHERE relnamespace = 'eventstore'::regnamespace AND relkind = 'r'
    UNION ALL SELECT proname, proacl FROM pg_proc WHERE pronamespace = 'eventstore'::regnamespace)
  SELECT name, entry::text AS given FROM object, unnest(acl) entry ORDER BY name, given`;

describe("a PostgreSQL role with rights on an empty log keeps exactly these", () => {
  test.each(["restore", "audit import"])("after %s replaces that log", async (name) => {
    using folder = temporaryFolder();
    const env = await SERVER.make(folder);
    const url = env["DATABASE_URL"];
    await append(env, STREAMS.outreach, imported("101", "ann_builds"));
    const [copy, list] = [folder.file("copy"), folder.file("log.jsonl")];
    expect(await run(env, backup, copy)).toMatchObject({ code: 0 });
    writeFileSync(list, (await run(env, audit, "export")).out);
    await SERVER.loseLog(env);
    await withLog(env, async () => {}, { acceptLoss: true });
    const asRole = new URL(url!);
    asRole.username = `app_${asRole.pathname.slice(1)}`;
    await ask(url, `CREATE ROLE ${asRole.username} LOGIN; ${GRANTS.replaceAll("reachlog_app", asRole.username)}`);
    await ask(url, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA eventstore FROM PUBLIC");
    const before = await ask(url, RIGHTS);
    const replacing =
      name === "restore"
        ? run(env, restoreCommand, copy, "--take-over-keys")
        : run(env, audit, "import", list, "--take-over-keys");
    expect(await replacing).toMatchObject({ code: 0 });
    expect(before.map(({ given }) => given)).toContainEqual(expect.stringContaining(asRole.username));
    expect([...(await ask(url, RIGHTS))]).toEqual([...before]);
    const ofRole = { ...env, DATABASE_URL: asRole.href };
    await append(ofRole, STREAMS.outreach, imported("102", "bob"));
    expect(await peopleOf(ofRole)).toEqual(["ann_builds", "bob"]);
  });
});

/** Returns all rows of the key store. */
async function keysOf(env: Env) {
  await using keys = await locateLog(configOf(env)).secrets.keys.open();
  return await keys.contents();
}

/** Replaces the key store's rows by older ones, as an operator does with a database dump. */
async function putKeys(env: Env, contents: Awaited<ReturnType<typeof keysOf>>): Promise<void> {
  await using keys = await locateLog(configOf(env)).secrets.keys.open();
  const { binding } = await keys.label();
  await keys.transact((rows) => rows.clear());
  await keys.fill(contents);
  await keys.transact((rows) => rows.relabel({ changes: contents.changes, binding }));
}
