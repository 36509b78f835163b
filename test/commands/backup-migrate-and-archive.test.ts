// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newDatabase } from "eventstore-lite/testing";
import { backup } from "../../src/commands/backup-migrate-and-archive.ts";
import { measure } from "../../src/backup/copy-backup-files-and-secrets.ts";
import { MANIFEST, NAMES, readManifest, signManifest, type BackupFile } from "../../src/backup/manifest.ts";
import { putBack } from "../../src/backup/put-backup-in-place.ts";
import { writeBackup } from "../../src/backup/write-backup.ts";
import { audit } from "../../src/commands/audit.ts";
import { key } from "../../src/commands/master-key.ts";
import { restoreCommand, restored as sayRestored } from "../../src/commands/restore-and-clock-corrected.ts";
import { monitorOn } from "../../src/commands/shared/progress.ts";
import { loadConfig } from "../../src/config/config.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { locateLog } from "../../src/privacy/locate-log.ts";
import { newDayRef } from "../../src/privacy/daily-encryption-keys.ts";
import { newKey } from "../../src/privacy/key-store.ts";
import { openLog } from "../../src/privacy/open-log.ts";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import type { SqliteLog } from "../../src/config/database.ts";
import { capture, type Captured, NO_TERMINAL } from "../harness/capture-command.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { contacts, forget, recipients } from "../harness/in-process/operation-commands.ts";

const KEY = Buffer.alloc(32, 7).toString("base64");
const NOW = Date.now();

const imported = (id: string, username: string): NewEvent => addedOf({ id, username }, { basis: "dm_first" });
const CLICK: NewEvent = clickOf({ channels: ["ads"], ip: "203.0.113.7" });

let world: CommandHarness;
let place: TemporaryFolder;
let env: Record<string, string>;
let folder: string;
beforeEach(async () => {
  world = await openCommands(NOW, { REACHLOG_KEY: KEY });
  await world.append(STREAMS.outreach, [imported("101", "ann_builds"), imported("102", "bob")]);
  await world.append(STREAMS.link("go.example", "x"), [CLICK]);
  await world.store.vault.put("token", "canary", 0);
  place = temporaryFolder();
  env = { REACHLOG_KEY: KEY, DATABASE_URL: `sqlite:${place.file("data/reachlog.sqlite")}` };
  folder = join(world.directory, "backup");
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  place[Symbol.dispose]();
});

const made = async (): Promise<Captured> => world.run(backup, folder);
const restored = (...args: string[]): Promise<Captured> => capture(restoreCommand, [folder, ...args], { env });
const refusal = (...args: string[]): Promise<unknown> => restored(...args).catch((fault: unknown) => fault);
const peopleThere = async () =>
  (await capture(contacts, ["--json"], { env })).out
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { username: string | null }).username);

/** Writes and signs a new manifest of the backup after the test changed its files. */
function rewriteManifest(master: Uint8Array): void {
  const manifest = readManifest(folder);
  for (const [file, name] of Object.entries(NAMES)) {
    manifest.files[file as BackupFile] = measure(join(folder, name));
  }
  writeFileSync(join(folder, MANIFEST), JSON.stringify(signManifest(manifest, master)));
}

test.each(["files", "postgres"])("a backup of %s contains the keys of clicks but no visitor salts", async (engine) => {
  const url = engine === "files" ? {} : { DATABASE_URL: await newDatabase() };
  await using on = await openCommands(NOW, { REACHLOG_KEY: KEY, ...url });
  await on.append(STREAMS.link("go.example", "x"), [CLICK]);
  const { keys } = on.store.keyring;
  await keys.change((within) => within.put(newDayRef("visitor", "2026-11-26"), newKey()));
  const copy = join(on.directory, "salted");
  expect(await on.run(backup, copy)).toMatchObject({ code: 0 });
  await using copied = await sqliteSecrets(join(copy, NAMES.keys)).open();
  expect(await copied.names("v")).toEqual([]);
  expect(await copied.names("c")).toEqual(await keys.refs("c"));
  expect(await keys.refs("v")).toHaveLength(1);
});

test("a backup is a private folder with everything except the master key", async () => {
  const { position, hash } = await world.store.head();
  const { code, out, err } = await made();
  expect([code, out, err]).toEqual([
    0,
    expect.stringMatching(
      new RegExp(`: ${position} events, the chain is whole; head ${position} ${hash}; \\d+ bytes\\n$`),
    ),
    "the master key is not in it: REACHLOG_KEY\n",
  ]);
  expect(readdirSync(folder).toSorted()).toEqual([MANIFEST, ...Object.values(NAMES)].toSorted());
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(folder))
    expect([name, statSync(join(folder, name)).mode & 0o777]).toEqual([name, 0o600]);
  const bytes = readdirSync(folder).map((name) => readFileSync(join(folder, name), "latin1"));
  const secrets = ["canary", "ann_builds", "203.0.113.7", "PRIVATE KEY", KEY];
  expect(secrets.filter((secret) => bytes.join().includes(secret))).toEqual([]);
});

test("a backup restored elsewhere has the same events, vault, identity and signing key", async () => {
  const signer = (await world.run(audit, "head", "--public-key")).out;
  const { position, hash } = await world.store.head();
  await made();
  expect(await restored()).toMatchObject({ code: 0, err: "" });
  expect(await peopleThere()).toEqual(["ann_builds", "bob"]);
  expect((await capture(audit, ["head", "--public-key"], { env })).out).toBe(signer);
  await using log = await openLog(loadConfig(env, () => ""));
  expect([log.id, log.begunAs]).toEqual([world.store.id, "backup"]);
  expect(await log.head()).toMatchObject({ position, hash });
  expect((await log.vault.get("token"))?.value).toBe("canary");
  const [click] = await Array.fromAsync(log.read({ types: ["LinkClicked"] }));
  expect(click?.data).toEqual(CLICK.data);
  expect(existsSync(logFiles(place.file("data/reachlog.sqlite")).checkpoint)).toBe(true);
});

test("restore puts the keys where KEYS_FILE says, and creates its folder", async () => {
  await made();
  env["KEYS_FILE"] = place.file("elsewhere/keys.sqlite");
  expect(await restored()).toMatchObject({ code: 0 });
  expect(existsSync(place.file("elsewhere/keys.sqlite"))).toBe(true);
  expect(readdirSync(place.file("data"))).not.toContain("reachlog.keys.sqlite");
  expect(await peopleThere()).toEqual(["ann_builds", "bob"]);
});

test("restored starts a new epoch of the log, and fails without a log", async () => {
  const { epoch } = world.store;
  expect(await world.run(sayRestored)).toMatchObject({
    code: 0,
    out: expect.stringContaining("the next start treats the log"),
  });
  expect(JSON.parse((await world.run(sayRestored, "--json")).out)).toMatchObject({ restored: expect.any(String) });
  await using log = await openLog(loadConfig(world.env, () => ""));
  expect([log.id, log.begunAs]).toEqual([world.store.id, "operator"]);
  expect(log.epoch).not.toBe(epoch);
  const none = capture(sayRestored, [], { env }).catch((fault: unknown) => fault);
  expect(await none).toMatchObject({ kind: "not_found" });
  expect(existsSync(place.file("data/reachlog.sqlite"))).toBe(false);
});

test("a rehearsal verifies the backup and writes nothing at the log's place", async () => {
  const { position, hash } = await world.store.head();
  await made();
  const { code, out } = await restored("--rehearse", "--json");
  expect([code, JSON.parse(out)]).toEqual([
    0,
    { folder, restored: false, made_at: expect.any(String), position, hash },
  ]);
  expect(readdirSync(place.path)).toEqual([]);
});

describe("the record of a backup in the log", () => {
  const recorded = async (of = world.store) =>
    (await Array.fromAsync(of.read({ types: ["BackupMade", "BackupRehearsed"] }))).map(({ type, data, meta }) => [
      type,
      data,
      meta.caller,
    ]);
  const rehearsed = (environment: Readonly<Record<string, string>>): Promise<Captured> =>
    capture(restoreCommand, [folder, "--rehearse"], { env: environment });

  test("names the head when a backup is made, and when it is rehearsed at the log", async () => {
    const { position, hash } = await world.store.head();
    await made();
    const data = { position, hash, made_at: readManifest(folder).made_at };
    expect(await recorded()).toEqual([["BackupMade", data, "command-line"]]);
    expect(await rehearsed(world.env)).toMatchObject({ code: 0, err: "" });
    expect((await recorded()).slice(1)).toEqual([["BackupRehearsed", data, "command-line"]]);
  });

  test("is not written to the original by a backup of a restored copy", async () => {
    await made();
    await restored();
    const drilled = join(world.directory, "drilled");
    expect(await capture(backup, [drilled], { env })).toMatchObject({ code: 0 });
    expect(await recorded()).toHaveLength(1);
    await using copy = await openLog(loadConfig(env, () => ""));
    expect((await recorded(copy)).map(([type]) => type)).toEqual(["BackupMade"]);
  });

  test("is not written to an empty log at the place where the backup is rehearsed", async () => {
    await made();
    const other = { ...env, DATABASE_URL: `sqlite:${place.file("other/reachlog.sqlite")}` };
    await using log = await openLog(loadConfig(other, () => ""));
    expect(await rehearsed(other)).toMatchObject({ code: 0, err: "" });
    expect((await log.head()).position).toBe(0);
  });

  test("is not written to a restored copy with a diverged history", async () => {
    await made();
    await restored();
    await using copy = await openLog(loadConfig(env, () => ""));
    const { append } = createEventLog(copy, () => Bun.randomUUIDv7());
    for (const id of ["201", "202", "203", "204"]) await append(STREAMS.outreach, [imported(id, `eve_${id}`)], {});
    await world.append(STREAMS.outreach, [imported("105", "eve")]);
    const later = join(world.directory, "later");
    await world.run(backup, later);
    expect(await capture(restoreCommand, [later, "--rehearse"], { env })).toMatchObject({ code: 0, err: "" });
    expect(await recorded(copy)).toEqual([]);
  });

  test("is missing with a warning if the log cannot be opened; the rehearsal still succeeds", async () => {
    await made();
    writeFileSync(place.file("broken.sqlite"), "no log");
    const broken = { ...env, DATABASE_URL: `sqlite:${place.file("broken.sqlite")}` };
    const { code, out, err } = await rehearsed(broken);
    expect([code, out]).toEqual([0, expect.stringContaining("is whole and can be restored")]);
    expect(err).toStartWith("the log could not record this: ");
  });
});

test.each([
  [{ DATABASE_URL: "sqlite:/srv/mine/events.db" }, ", else from the file /srv/mine/events.key."],
  [{}, ", else from the file data/reachlog.key."],
  [{ DATABASE_URL: "sqlite:" }, "."],
  [{ DATABASE_URL: "postgres://127.0.0.1/log", REACHLOG_KEY: "ab".repeat(32) }, "."],
])("the help of restore names the key file that it reads: %j", async (settings, end) => {
  const { out } = await capture(restoreCommand, ["--help"], { env: settings });
  expect(out).toEndWith(`\nThe master key is read from REACHLOG_KEY${end}\n`);
});

test("a recipient forgotten between the copies of log and keys stays forgotten after the restore", async () => {
  const { secrets } = locateLog(loadConfig(world.env, () => ""));
  const backupAndForget: typeof world.store.backup = async (...args) => {
    const copied = await world.store.backup(...args);
    expect(await world.run(forget, "ann_builds", "--yes")).toMatchObject({ code: 0 });
    return copied;
  };
  await writeBackup({ log: { ...world.store, backup: backupAndForget }, secrets }, folder, { clock: () => NOW });
  expect(await restored()).toMatchObject({ code: 0 });
  expect(await peopleThere()).not.toContain("ann_builds");
  // The two recipients stay forgotten: an import of a list that contains them records nothing about them.
  const list = place.file("people.csv");
  writeFileSync(list, "id,username,basis\n101,ann_builds,opt_in\n103,cas,opt_in\n");
  await capture(recipients, ["import", list], { env });
  expect(await peopleThere()).toContain("cas");
  expect(await peopleThere()).not.toContain("ann_builds");
});

describe("a backup that fails", () => {
  const secrets = () => locateLog(loadConfig(world.env, () => "")).secrets;
  const attempt = (log: typeof world.store) =>
    writeBackup({ log, secrets: secrets() }, folder, { clock: () => NOW }).catch((fault: unknown) => fault);
  afterEach(() => {
    expect(readdirSync(world.directory).filter((name) => name.startsWith("backup"))).toEqual([]);
  });

  test("leaves no files", async () => {
    const loadKey = (): never => {
      throw new Error("no key");
    };
    const checkpoints = { ...world.store.checkpoints, loadKey };
    expect(await attempt({ ...world.store, checkpoints })).toMatchObject({ message: "no key" });
  });

  test("because of a concurrent rotation of the master key asks for a repeat", async () => {
    world.env["REACHLOG_KEY_NEXT"] = Buffer.alloc(32, 8).toString("base64");
    const backupAndRotate: typeof world.store.backup = async (...args) => {
      const copied = await world.store.backup(...args);
      expect(await world.run(key, "rotate")).toMatchObject({ code: 0 });
      return copied;
    };
    expect(await attempt({ ...world.store, backup: backupAndRotate })).toMatchObject({
      kind: "busy",
      message: expect.stringContaining("repeat the backup"),
    });
  });
});

test("the output names the folder by its absolute path", async () => {
  const { out } = await world.run(backup, relative(process.cwd(), folder), "--json");
  expect(JSON.parse(out)).toMatchObject({ folder });
});

describe("restore refuses and leaves no log", () => {
  afterEach(() => expect(existsSync(place.file("data/reachlog.sqlite"))).toBe(false));

  test.each(Object.values(NAMES))("if a byte of %s was changed", async (name) => {
    await made();
    const bytes = readFileSync(join(folder, name));
    const at = Math.floor(bytes.length / 2);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(join(folder, name), bytes);
    expect(await refusal()).toMatchObject({
      kind: expect.stringMatching(/^(?:invalid|damaged)$/),
      message: expect.stringContaining(name),
    });
    expect(readdirSync(place.file("data"))).toEqual([]);
  });

  test("if the log does not match the signed head, even with a valid manifest", async () => {
    await made();
    await world.append(STREAMS.outreach, [imported("105", "eve")]);
    await world.store.backup(join(world.directory, "later.sqlite"));
    copyFileSync(join(world.directory, "later.sqlite"), join(folder, NAMES.log));
    rewriteManifest(Buffer.from(KEY, "base64"));
    expect(await refusal()).toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("not the one that the manifest names"),
    });
  });

  test("if an event of the log was altered, even with a valid manifest", async () => {
    await made();
    const altered = new DatabaseSync(join(folder, NAMES.log));
    altered.exec("DROP TRIGGER events_are_never_updated; UPDATE events SET data = '{}' WHERE position = 2");
    altered.close();
    rewriteManifest(Buffer.from(KEY, "base64"));
    expect(await refusal()).toMatchObject({ kind: "invalid", message: expect.stringContaining("position 2") });
  });

  test("if the keys are an older copy", async () => {
    const older = join(world.directory, "older");
    await world.run(backup, older);
    await world.append(STREAMS.outreach, [imported("105", "eve")]);
    await made();
    copyFileSync(join(older, NAMES.keys), join(folder, NAMES.keys));
    rewriteManifest(Buffer.from(KEY, "base64"));
    for (const args of [[], ["--rehearse"]]) {
      expect(await refusal(...args)).toMatchObject({
        kind: "invalid",
        message: expect.stringContaining(": 1 keys that the log names are missing"),
      });
    }
  });

  test("if the manifest was rewritten without the master key, even if the chain still verifies", async () => {
    await made();
    const altered = new DatabaseSync(join(folder, NAMES.log));
    altered.exec("CREATE TRIGGER planted AFTER INSERT ON events BEGIN DELETE FROM snapshots; END");
    altered.close();
    rewriteManifest(Buffer.alloc(32, 8));
    expect(await refusal()).toMatchObject({
      kind: "invalid",
      message: expect.stringContaining(`${MANIFEST} was not written by reachlog backup`),
    });
  });

  test("with a different master key, or without one", async () => {
    await made();
    expect(
      await capture(restoreCommand, [folder], {
        env: { ...env, REACHLOG_KEY: Buffer.alloc(32, 8).toString("base64") },
      }).catch((fault: unknown) => fault),
    ).toMatchObject({
      kind: "configuration",
      message: expect.stringContaining("was encrypted with the key"),
    });
    const { REACHLOG_KEY: _, ...keyless } = env;
    expect(await capture(restoreCommand, [folder], { env: keyless }).catch((fault: unknown) => fault)).toMatchObject({
      kind: "configuration",
      message: expect.stringContaining(place.file("data/reachlog.key")),
    });
  });

  test("if a service created a log there during the verification", async () => {
    await made();
    const config = loadConfig(env, () => "");
    const { file } = config.log as SqliteLog;
    const beforePlacing = async (): Promise<void> => writeFileSync(file, "a log");
    const master = Buffer.from(KEY, "base64");
    const placed = putBack(monitorOn(NO_TERMINAL), folder, config, {
      master,
      beforePlacing,
    });
    expect(await placed.catch((fault: unknown) => fault)).toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("nothing is overwritten"),
    });
    expect(readdirSync(place.file("data"))).toEqual(["reachlog.sqlite"]);
    rmSync(place.file("data"), { recursive: true });
  });

  test("if the manifest is empty", async () => {
    await made();
    writeFileSync(join(folder, MANIFEST), "{}");
    expect(await refusal()).toMatchObject({ kind: "invalid" });
  });
});

test("backup does not overwrite a backup, and restore does not overwrite a log", async () => {
  await made();
  const before = readFileSync(join(folder, MANIFEST));
  expect(await made().catch((fault: unknown) => fault)).toMatchObject({ kind: "conflict" });
  expect(readFileSync(join(folder, MANIFEST)).equals(before)).toBe(true);
  expect(readdirSync(world.directory).filter((name) => name.endsWith(".partial"))).toEqual([]);

  await restored();
  const files = readdirSync(place.file("data"));
  expect(await refusal()).toMatchObject({
    kind: "conflict",
    message: expect.stringContaining(place.file("data/reachlog.sqlite")),
  });
  expect(readdirSync(place.file("data"))).toEqual(files);
});
