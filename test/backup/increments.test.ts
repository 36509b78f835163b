// These tests run parts of the service inside the test process.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Head } from "eventstore-lite";
import { loadSigningKey, openCheckpoint, type SigningKey } from "eventstore-lite/proof";
import { takeOwnership } from "eventstore-lite/segments";
import { newDatabase } from "eventstore-lite/testing";
import { audit as auditCommand } from "../../src/commands/audit.ts";
import { archive as archiveCommand, backup } from "../../src/commands/backup-migrate-and-archive.ts";
import { measureAll } from "../../src/backup/copy-backup-files-and-secrets.ts";
import { readSettled } from "../../src/backup/extract-from-increments.ts";
import { type Increments, readIncrements } from "../../src/backup/increments-manifest.ts";
import { MANIFEST, NAMES, SECRET_FILES, signManifest } from "../../src/backup/manifest.ts";
import { key } from "../../src/commands/master-key.ts";
import { restoreCommand } from "../../src/commands/restore-and-clock-corrected.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { signChain, signHead } from "../../src/log/sign-and-compare-checkpoints.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { capture, type Captured, withLog } from "../harness/capture-command.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";
import { contacts, forget } from "../harness/in-process/operation-commands.ts";
import { isWhole } from "../harness/case-count.ts";

const REACHLOG_KEY = Buffer.alloc(32, 7).toString("base64");

type Env = Record<string, string>;

/** Creates a new, empty place for a log and returns its settings. */
type NewPlace = (folder: TemporaryFolder) => Promise<Env>;

let places = 0;
const inFiles: NewPlace = async (within) => ({
  REACHLOG_KEY,
  DATABASE_URL: `sqlite:${within.file(`data-${(places += 1)}/log.sqlite`)}`,
});
const onServer: NewPlace = async () => ({ REACHLOG_KEY, DATABASE_URL: await newDatabase() });

const run = (env: Env, command: MakeCommand, ...args: string[]): Promise<Captured> => capture(command, args, { env });
const refusal = (running: Promise<unknown>): Promise<unknown> => running.catch((fault: unknown) => fault);

/** Appends one imported recipient to the log, with an idempotency key made of the username. */
const add = (env: Env, id: string, username: string) =>
  withLog(env, (log) =>
    createEventLog(log, () => Bun.randomUUIDv7()).append(
      STREAMS.outreach,
      [addedOf({ id, username }, { basis: "dm_first" })],
      {},
      { key: `added/${username}` },
    ),
  );

interface Made {
  readonly number: number;
  readonly position: number;
  readonly hash: string;
  readonly bytes: number;
}

const peopleOf = async (env: Env): Promise<string[]> =>
  (await run(env, contacts, "--json")).out
    .split("\n")
    .flatMap((line) => (line === "" ? [] : ((JSON.parse(line) as { username: string | null }).username ?? [])));

let folder: TemporaryFolder;
let all: string;
beforeEach(() => {
  folder = temporaryFolder();
  all = folder.file("all");
});
afterEach(() => folder[Symbol.dispose]());

async function back(env: Env): Promise<Made> {
  const { out, code } = await run(env, backup, all, "--incremental", "--json");
  expect(code).toBe(0);
  return JSON.parse(out) as Made;
}

const segments = () => readdirSync(join(all, "segments")).toSorted();
const verify = (env: Env) => run(env, backup, all, "--verify");

describe.each([
  ["files", inFiles, onServer],
  ["PostgreSQL", onServer, inFiles],
])("incremental backups of a log on %s", (_name, make, makeOther) => {
  let kept: TemporaryFolder;
  let env: Env;
  const made: Made[] = [];
  const names: string[] = ["ann_builds", "bob", "cas"];
  // All tests of this group use the same backups. The last two tests add backups to them.
  beforeAll(async () => {
    kept = temporaryFolder();
    all = kept.file("all");
    env = await make(kept);
    for (const [index, name] of names.entries()) {
      await add(env, `10${index}`, name);
      made.push(await back(env));
    }
  });
  beforeEach(() => {
    all = kept.file("all");
  });
  afterAll(() => kept[Symbol.dispose]());

  test.each(["the same engine", "the other engine"])(
    "are restored to %s by number, each with its recorded head",
    async (which) => {
      const isSame = which === "the same engine";
      // A restore to the other engine (files or PostgreSQL) writes by other code but reads the same backups. So an
      // ordinary test run restores only one backup to it, and all backups to the same engine.
      const numbers = isSame || isWhole ? names.keys() : [1];
      for (const index of numbers) {
        const { position, hash } = made[index]!;
        const place = await (isSame ? make : makeOther)(folder);
        expect(await run(place, restoreCommand, all, "--backup", String(index + 1))).toMatchObject({ code: 0 });
        expect(await peopleOf(place)).toEqual(names.slice(0, index + 1));
        await withLog(place, async (log) => {
          expect(await log.head()).toMatchObject({ position, hash });
          expect(await log.verify()).toMatchObject({ ok: true });
          expect(log.begunAs).toBe("backup");
          await withLog(env, async (source) =>
            expect([log.id, log.epochs.slice(0, -1)]).toEqual([source.id, [...source.epochs]]),
          );
        });
        const { position: end } = await withLog(place, (log) => log.head());
        // The restored log knows the idempotency key of this import, so repeating the import appends nothing.
        await add(place, `10${index}`, names[index]!);
        expect(await withLog(place, (log) => log.head())).toMatchObject({ position: end });
      }
    },
  );

  test("are restored up to any position or time", async () => {
    const { position } = made[1]!;
    const between = position + 1;
    for (const moment of [between, 1]) {
      const place = await make(folder);
      expect(await run(place, restoreCommand, all, "--as-of", String(moment))).toMatchObject({ code: 0 });
      const hash = await withLog(env, (log) => log.hashAt(moment));
      expect(await withLog(place, (log) => log.head())).toMatchObject({ position: moment, hash });
    }
    const { time } = await withLog(env, async (log) => {
      for await (const event of log.readStored({ from: between, to: between })) return event;
      throw new Error("no event");
    });
    const last = await withLog(env, async (log) => {
      let end = 0;
      for await (const event of log.readStored({ until: new Date(time) })) end = event.position;
      return end;
    });
    const place = await make(folder);
    expect(await run(place, restoreCommand, all, "--as-of", time)).toMatchObject({ code: 0 });
    expect(await withLog(place, (log) => log.head())).toMatchObject({ position: last });
    expect(await refusal(run(await make(folder), restoreCommand, all, "--as-of", "9999"))).toMatchObject({
      kind: "usage",
      message: expect.stringContaining("it has no position 9999"),
    });
  });

  test("refuse the folder of another log or of a newer history, and leave it unchanged", async () => {
    const before = readFileSync(join(all, MANIFEST), "utf8");
    const other = await make(folder);
    await add(other, "200", "dan");
    expect(await refusal(run(other, backup, all, "--incremental"))).toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("holds backups of the log"),
    });
    const rolledBack = await make(folder);
    await run(rolledBack, restoreCommand, all, "--backup", "2");
    const refused = await refusal(run(rolledBack, backup, all, "--incremental"));
    expect(refused).toMatchObject({
      kind: "conflict",
      message: expect.stringMatching(/ends at \d+: the log was rolled back/),
    });
    for (let more = 0; more < 4; more += 1) await add(rolledBack, `30${more}`, `eve_${more}`);
    expect(await refusal(run(rolledBack, backup, all, "--incremental"))).toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("another event at position"),
    });
    expect(readFileSync(join(all, MANIFEST), "utf8")).toBe(before);
    expect(await verify(env)).toMatchObject({ code: 0 });
  });

  test("add one segment each, and leave former segments unchanged", async () => {
    expect(made.map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(segments()).toHaveLength(3);
    const before = segments().map((name) => [name, statSync(join(all, "segments", name)).mtimeMs]);
    await back(env);
    expect(
      segments()
        .slice(0, 3)
        .map((name) => [name, statSync(join(all, "segments", name)).mtimeMs]),
    ).toEqual(before);
    expect(await verify(env)).toMatchObject({
      code: 0,
      out: expect.stringContaining("4 backups in 4 segments are whole"),
    });
    expect(readdirSync(all).filter((name) => name.startsWith("secrets-"))).toEqual(["secrets-000004"]);
  });

  test("keep a recipient forgotten, also when an earlier backup is restored", async () => {
    expect(await run(env, forget, "ann_builds", "--yes")).toMatchObject({ code: 0 });
    await back(env);
    const place = await make(folder);
    expect(await run(place, restoreCommand, all, "--backup", "2")).toMatchObject({ code: 0 });
    expect(await peopleOf(place)).toEqual(["bob"]);
  });
});

describe("incremental backups of a log in a file", () => {
  let env: Env;
  beforeEach(async () => {
    env = await inFiles(folder);
    await add(env, "101", "ann_builds");
    await back(env);
    await add(env, "102", "bob");
    await back(env);
  });

  test("are recorded in the log, as is a rehearsal", async () => {
    expect(await run(env, restoreCommand, all, "--rehearse")).toMatchObject({ code: 0, err: "" });
    const recorded = await withLog(env, (log) =>
      Array.fromAsync(log.read({ types: ["BackupMade", "BackupRehearsed"] }), ({ type }) => type),
    );
    expect(recorded).toEqual(["BackupMade", "BackupMade", "BackupRehearsed"]);
  });

  test("remove the files of a killed backup", async () => {
    mkdirSync(join(all, "secrets-000003"));
    const left = [
      join("secrets-000003", NAMES.keys),
      join("segments", "0000000000000004-0000000000000009.zst"),
      join("segments", "0000000000000004-0000000000000009.zst.x.partial"),
      "manifest.json.x.partial",
    ];
    for (const name of left) writeFileSync(join(all, name), "half");
    expect(await back(env)).toMatchObject({ number: 3 });
    expect(left.slice(1).filter((name) => existsSync(join(all, name)))).toEqual([]);
    expect(await verify(env)).toMatchObject({ code: 0 });
  });

  test("need another folder after a key rotation", async () => {
    const next = Buffer.alloc(32, 9).toString("base64");
    expect(await run({ ...env, REACHLOG_KEY_NEXT: next }, key, "rotate")).toMatchObject({ code: 0 });
    const rotated = { ...env, REACHLOG_KEY: next };
    expect(await refusal(run(rotated, backup, all, "--incremental"))).toMatchObject({
      kind: "conflict",
      message: `${all} holds backups of another master key: after a key rotation, name another folder`,
    });
    expect(await run(rotated, backup, folder.file("other"), "--incremental")).toMatchObject({ code: 0 });
    expect(await verify(env)).toMatchObject({ code: 0 });
  });

  test("are refused while another backup writes to the folder", async () => {
    const release = takeOwnership(join(all, "backup"), "another", Date.now());
    expect(await refusal(run(env, backup, all, "--incremental"))).toMatchObject({
      kind: "busy",
      message: expect.stringContaining("another backup into"),
    });
    release();
    expect(await back(env)).toMatchObject({ number: 3 });
  });

  test("are refused in the folder of a single backup", async () => {
    const single = folder.file("single");
    expect(await run(env, backup, single)).toMatchObject({ code: 0 });
    expect(await refusal(run(env, backup, single, "--incremental"))).toMatchObject({ kind: "conflict" });
    expect(await refusal(run(env, restoreCommand, single, "--backup", "1"))).toMatchObject({ kind: "usage" });
    expect(await refusal(run(env, restoreCommand, all, "--backup", "3"))).toMatchObject({
      kind: "usage",
      message: expect.stringContaining("has backups 1 to 2, but no 3"),
    });
    expect(await refusal(run(env, restoreCommand, all, "--backup", "1", "--as-of", "1"))).toMatchObject({
      kind: "usage",
    });
    expect(readdirSync(single).toSorted()).toEqual([MANIFEST, ...Object.values(NAMES)].toSorted());
  });

  test("are not restored if a file is altered or missing, and its name is reported", async () => {
    const files = [
      ...segments().map((name) => join(all, "segments", name)),
      ...["vault.sqlite", "keys.sqlite", "head.txt", "signing-key.encrypted"].map((name) =>
        join(all, "secrets-000002", name),
      ),
    ];
    for (const file of files) {
      const bytes = readFileSync(file);
      const altered = Buffer.from(bytes);
      altered[Math.floor(bytes.length / 2)]! ^= 1;
      writeFileSync(file, altered);
      expect(await verify(env)).toMatchObject({
        code: 1,
        out: expect.stringContaining(`${basename(file)} does not match`),
      });
      renameSync(file, `${file}.away`);
      expect(await verify(env)).toMatchObject({
        code: 1,
        out: expect.stringContaining(`${basename(file)} is missing`),
      });
      const place = await inFiles(folder);
      expect(await refusal(run(place, restoreCommand, all))).toBeInstanceOf(Error);
      expect(existsSync(place["DATABASE_URL"]!.slice("sqlite:".length))).toBe(false);
      rmSync(`${file}.away`);
      writeFileSync(file, bytes);
    }
    expect(await verify(env)).toMatchObject({ code: 0 });
  });

  test("are refused with an altered manifest or another master key", async () => {
    const text = readFileSync(join(all, MANIFEST), "utf8");
    const other = { ...env, REACHLOG_KEY: Buffer.alloc(32, 8).toString("base64") };
    expect(await refusal(verify(other))).toMatchObject({ kind: "configuration" });
    writeFileSync(join(all, MANIFEST), text.replace('"version":"', '"version":"9'));
    expect(await refusal(verify(env))).toMatchObject({ kind: "invalid", message: expect.stringContaining(MANIFEST) });
  });
});

describe("a wrong manifest signed with the master key", () => {
  const master = Buffer.alloc(32, 7);
  let env: Env;
  let key: SigningKey;
  let head: Head;
  beforeEach(async () => {
    env = await inFiles(folder);
    await add(env, "101", "ann_builds");
    await back(env);
    await add(env, "102", "bob");
    await back(env);
    key = loadSigningKey(logFiles(env["DATABASE_URL"]!.slice("sqlite:".length)).signingKey);
    const { position, hash, made_at } = readIncrements(all, master).backups.at(-1)!;
    head = { position, hash, time: made_at };
  });

  /**
   * Changes the backup's manifest with `change` and signs it again, with the current sizes and hashes of the files of
   * keys and head.
   */
  function rewrite(change: (increments: Increments) => void = () => {}): void {
    const increments = readIncrements(all, master);
    increments.files = measureAll(join(all, "secrets-000002"), SECRET_FILES);
    change(increments);
    writeFileSync(join(all, MANIFEST), JSON.stringify(signManifest<Increments>(increments, master)));
  }

  const OTHER_HASH = "ab".repeat(32);

  test.each([
    ["another root", {}, OTHER_HASH],
    ["another last hash", { hash: OTHER_HASH }, undefined],
    ["another position", { position: 1 }, undefined],
    ["another log", { id: "another" }, undefined],
  ])("is found if the signed head differs: %s", async (_name, changes, otherRoot) => {
    const id = await withLog(env, async (log) => log.id);
    const file = join(all, "secrets-000002", NAMES.head);
    const { root } = openCheckpoint(readFileSync(file, "utf8"), key.publicKey);
    const sign = (more: { readonly id?: string; readonly position?: number; readonly hash?: string }, to = root!) =>
      writeFileSync(file, signChain({ id: more.id ?? id }, { ...head, ...more }, key, Date.now, { root: to }));
    sign({});
    rewrite();
    expect(await verify(env)).toMatchObject({ code: 0 });
    sign(changes, otherRoot);
    rewrite();
    expect(await verify(env)).toMatchObject({
      code: 1,
      out: expect.stringContaining("head.txt is the signed head of another log"),
    });
  });

  test("is found if another key signed the head", async () => {
    const other = await inFiles(folder);
    await add(other, "200", "dan");
    const foreign = loadSigningKey(logFiles(other["DATABASE_URL"]!.slice("sqlite:".length)).signingKey);
    const id = await withLog(env, async (log) => log.id);
    const file = join(all, "secrets-000002", NAMES.head);
    const { root } = openCheckpoint(readFileSync(file, "utf8"), key.publicKey);
    writeFileSync(file, signChain({ id }, head, foreign, Date.now, { root: root! }));
    rewrite();
    expect(await verify(env)).toMatchObject({ code: 1 });
  });

  test("is found if no segment ends with a backup's head", async () => {
    rewrite((increments) => void (increments.backups[0]!.hash = OTHER_HASH));
    expect(await verify(env)).toMatchObject({
      code: 1,
      out: expect.stringContaining("backup 1: no segment ends with its head"),
    });
  });

  test("is found and not restored if a segment ends with another hash", async () => {
    rewrite(({ segments: all, backups }) => {
      all.at(-1)!.hash = OTHER_HASH;
      backups.at(-1)!.hash = OTHER_HASH;
    });
    const sentence = "does not end where the backup's manifest says";
    expect(await verify(env)).toMatchObject({ code: 1, out: expect.stringContaining(sentence) });
    expect(await refusal(run(await inFiles(folder), restoreCommand, all))).toMatchObject({
      message: expect.stringContaining(sentence),
    });
  });
});

test.each(["whole", "incremental"])("a log shorter than its checkpoint is not backed up (%s)", async (kind) => {
  const env = await inFiles(folder);
  const file = env["DATABASE_URL"]!.slice("sqlite:".length);
  await add(env, "101", "ann_builds");
  copyFileSync(file, `${file}.earlier`);
  await add(env, "102", "bob");
  await withLog(env, async (log) => {
    await log.checkpoints.write(await signHead(log, await log.head(), await log.checkpoints.loadKey(), Date.now));
  });
  for (const one of [file, `${file}-wal`, `${file}-shm`]) rmSync(one, { force: true });
  copyFileSync(`${file}.earlier`, file);
  const refused = await refusal(run(env, backup, all, ...(kind === "whole" ? [] : ["--incremental"])));
  expect(refused).toMatchObject({ kind: "damaged", message: expect.stringContaining("no backup was made") });
  expect(existsSync(join(all, MANIFEST))).toBe(false);
});

/** The paths of all files, with their contents. */
const contentsOf = (within: string) =>
  readdirSync(within, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((path) => [
      path,
      statSync(join(within, path)).isFile() ? readFileSync(join(within, path), "latin1") : "folder",
    ]);
/** Returns a folder's files without the lock, because even a refused backup may write it. */
const withoutLock = (contents: ReturnType<typeof contentsOf>) => contents.filter(([path]) => path !== "backup.lock");

describe("foreign files", () => {
  let env: Env;
  beforeEach(async () => {
    env = await inFiles(folder);
    await add(env, "101", "ann_builds");
  });

  test.each([
    "notes.txt",
    "segments/notes.txt",
    "segments/0000000000000001-0000000000000002-0123456789abcdef.zst",
    "segments/inner/manifest.json",
    "secrets-000001/notes.txt",
    "secrets-000009/keys.sqlite",
    "inner/manifest.json",
  ])("such as %s in the folder are kept, and no backup is added", async (other) => {
    for (const isFirst of [true, false]) {
      if (!isFirst) await back(env);
      mkdirSync(dirname(join(all, other)), { recursive: true });
      writeFileSync(join(all, other), "theirs");
      const before = contentsOf(all);
      expect(await refusal(run(env, backup, all, "--incremental"))).toMatchObject({
        kind: "conflict",
        message: expect.stringContaining(`${all} holds ${other.replace(/inner.*|(?<=secrets-000009).*/, "")}`),
      });
      expect(withoutLock(contentsOf(all))).toEqual(withoutLock(before));
      rmSync(isFirst ? all : join(all, other.replace(/(?<=inner|secrets-000009).*/, "")), { recursive: true });
    }
    expect(await verify(env)).toMatchObject({ code: 0 });
  });

  test("from another log's unfinished first backup are kept, and refused", async () => {
    const other = await inFiles(folder);
    await add(other, "200", "dan");
    await back(other);
    rmSync(join(all, MANIFEST));
    const before = contentsOf(all);
    expect(await refusal(run(env, backup, all, "--incremental"))).toMatchObject({
      kind: "conflict",
      message: expect.stringContaining(`${all} holds segments/`),
    });
    expect(withoutLock(contentsOf(all))).toEqual(withoutLock(before));
    // The first backup of the second log is unfinished, so its files do not count: the next backup of that log is
    // number 1.
    expect(await back(other)).toMatchObject({ number: 1 });
    expect(await verify(other)).toMatchObject({ code: 0 });
  });

  test("from another history's unfinished first backup are kept", async () => {
    await add(env, "102", "bob");
    await back(env);
    const rolledBack = await inFiles(folder);
    expect(await run(rolledBack, restoreCommand, all, "--as-of", "1")).toMatchObject({ code: 0 });
    for (let more = 0; more < 4; more += 1) await add(rolledBack, `30${more}`, `eve_${more}`);
    rmSync(join(all, MANIFEST));
    const before = contentsOf(all);
    expect(await refusal(run(rolledBack, backup, all, "--incremental"))).toMatchObject({ kind: "conflict" });
    expect(withoutLock(contentsOf(all))).toEqual(withoutLock(before));
  });

  test("from backups without their manifest are kept", async () => {
    await back(env);
    await back(env);
    rmSync(join(all, MANIFEST));
    const before = contentsOf(all);
    expect(await refusal(run(env, backup, all, "--incremental"))).toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("secrets-000002"),
    });
    expect(withoutLock(contentsOf(all))).toEqual(withoutLock(before));
  });

  test("at recorded positions of segments, but not in the manifest, are kept", async () => {
    await add(env, "102", "bob");
    await back(env);
    const theirs = join(all, "segments", "0000000000000001-0000000000000001.zst");
    writeFileSync(theirs, "theirs");
    await back(env);
    expect(readFileSync(theirs, "utf8")).toBe("theirs");
    expect(await verify(env)).toMatchObject({ code: 0 });
  });

  test.each(["half a manifest", "[]", '{"format":2}'])(
    "such as a manifest that reads %j are refused and kept",
    async (text) => {
      await back(env);
      writeFileSync(join(all, MANIFEST), text);
      const before = contentsOf(all);
      expect(await refusal(run(env, backup, all, "--incremental"))).toMatchObject({ kind: "invalid" });
      expect(withoutLock(contentsOf(all))).toEqual(withoutLock(before));
    },
  );

  test.each([
    ["the folder's segments", (at: string) => join(at, "segments")],
    ["the folder", (at: string) => at],
    ["above the folder", (at: string) => dirname(at)],
    ["below the folder's segments", (at: string) => join(at, "segments", "old", "er")],
  ])("in an ARCHIVE_FOLDER that is %s are protected: the backup is refused in every spelling", async (_name, place) => {
    mkdirSync(folder.file("real"));
    symlinkSync(folder.file("real"), folder.file("link"));
    const archiving = { ...env, ARCHIVE_FOLDER: place(folder.file("real/all")) };
    for (const isEmpty of [true, false]) {
      if (!isEmpty) expect(await run(archiving, archiveCommand, "--before", "2")).toMatchObject({ code: 0 });
      const before = contentsOf(folder.file("real"));
      for (const spelt of ["real/all", "real/all/", "link/all", "real/../link/./all"]) {
        const to = `${folder.path}/${spelt}`;
        expect(await refusal(run(archiving, backup, to, "--incremental"))).toMatchObject({
          kind: "conflict",
          message: expect.stringContaining("ARCHIVE_FOLDER"),
        });
      }
      expect(contentsOf(folder.file("real"))).toEqual(before);
    }
    expect(await run(archiving, auditCommand, "verify")).toMatchObject({ code: 0 });
  });

  test("in the archive are protected: a backup into it or through a link is refused", async () => {
    const archive = env["DATABASE_URL"]!.slice("sqlite:".length).replace(/\.sqlite$/, ".segments");
    mkdirSync(archive);
    mkdirSync(all);
    symlinkSync(archive, join(all, "segments"));
    for (const to of [all, archive, dirname(archive)]) {
      expect(await refusal(run(env, backup, to, "--incremental"))).toMatchObject({
        kind: "conflict",
        message: expect.stringContaining("ARCHIVE_FOLDER"),
      });
    }
    expect(readdirSync(archive)).toEqual([]);
  });

  test("in an archive with a name that begins like the folder's are no obstacle", async () => {
    const archiving = { ...env, ARCHIVE_FOLDER: `${all}-archive` };
    await add(archiving, "102", "bob");
    expect(await run(archiving, archiveCommand, "--before", "2")).toMatchObject({ code: 0 });
    const before = contentsOf(`${all}-archive`);
    expect(await back(archiving)).toMatchObject({ number: 1 });
    expect(await back(archiving)).toMatchObject({ number: 2 });
    expect(contentsOf(`${all}-archive`)).toEqual(before);
  });

  test("a read is repeated if a backup removed the former keys during it", async () => {
    await back(env);
    const read = async () => {
      const numbers = readdirSync(all).filter((name) => name.startsWith("secrets-"));
      if (numbers.includes("secrets-000001")) await back(env);
      return numbers;
    };
    expect(await readSettled(all, read, ([secrets]) => secrets !== "secrets-000001")).toEqual(["secrets-000002"]);
    rmSync(all, { recursive: true });
    await back(env);
    const open = async () => {
      const file = join(all, (await read())[0]!, NAMES.keys);
      return readFileSync(file).length;
    };
    expect(await readSettled(all, open)).toBeGreaterThan(0);
    // If no other backup runs at the same time, a failed read is not repeated: its fault is reported.
    let reads = 0;
    const failing = async () => {
      reads += 1;
      throw new Error("gone");
    };
    expect(await refusal(readSettled(all, failing))).toMatchObject({ message: "gone" });
    expect(reads).toBe(1);
  });
});
