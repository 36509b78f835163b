// On the memory harness.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { takeOwnership } from "eventstore-lite";
import { newDatabase } from "eventstore-lite/testing/postgres-server";
import { backup } from "../../src/commands/backup.ts";
import { MANIFEST, NAMES } from "../../src/commands/backup/manifest.ts";
import { contacts } from "../../src/commands/contacts.ts";
import { forget } from "../../src/commands/forget.ts";
import { key } from "../../src/commands/key.ts";
import { restoreCommand } from "../../src/commands/restore.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { capture, type Captured, withLog } from "../harness/capture.ts";
import { addedOf } from "../harness/memory/new-events.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary.ts";

const REACHLOG_KEY = Buffer.alloc(32, 7).toString("base64");

type Env = Record<string, string>;

/** Settings of a place where nothing was ever kept. */
type NewPlace = (folder: TemporaryFolder) => Promise<Env>;

let places = 0;
const inFiles: NewPlace = async (within) => ({
  REACHLOG_KEY,
  DATABASE_URL: `sqlite:${within.file(`data-${(places += 1)}/log.sqlite`)}`,
});
const onServer: NewPlace = async () => ({ REACHLOG_KEY, DATABASE_URL: await newDatabase() });

const run = (env: Env, command: MakeCommand, ...args: string[]): Promise<Captured> => capture(command, args, { env });
const refusal = (running: Promise<unknown>): Promise<unknown> => running.catch((fault: unknown) => fault);

/** Appends a recipient, under a key of their name. */
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
])("of a log on %s", (_name, make, makeOther) => {
  let env: Env;
  let made: Made[];
  const names: string[] = ["ann_builds", "bob", "cas"];
  beforeEach(async () => {
    env = await make(folder);
    made = [];
    for (const [index, name] of names.entries()) {
      await add(env, `10${index}`, name);
      made.push(await back(env));
    }
  });

  test("each backup adds one segment with what is new, and leaves the former ones alone", async () => {
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
  }, 60_000);

  test.each(["the same engine", "the other engine"])(
    "each is restored to %s by its number, as the head kept elsewhere says",
    async (which) => {
      for (const [index, { position, hash }] of made.entries()) {
        const place = await (which === "the same engine" ? make : makeOther)(folder);
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
        // Its key is known, so that a repeat adds nothing.
        await add(place, `10${index}`, names[index]!);
        expect(await withLog(place, (log) => log.head())).toMatchObject({ position: end });
      }
    },
    120_000,
  );

  test("any position, and any time, is restored", async () => {
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
      message: expect.stringContaining("there is no position 9999"),
    });
  }, 120_000);

  test("a recipient forgotten since stays forgotten in every earlier backup, also where no newer keys are", async () => {
    expect(await run(env, forget, "ann_builds", "--yes")).toMatchObject({ code: 0 });
    await back(env);
    const place = await make(folder);
    expect(await run(place, restoreCommand, all, "--backup", "2")).toMatchObject({ code: 0 });
    expect(await peopleOf(place)).toEqual(["bob"]);
  }, 60_000);

  test("the folder of another log, and of one that was rolled back, is refused and stays as it was", async () => {
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
    expect(refused).toMatchObject({ kind: "conflict", message: expect.stringContaining("it was rolled back") });
    for (let more = 0; more < 4; more += 1) await add(rolledBack, `30${more}`, `eve_${more}`);
    expect(await refusal(run(rolledBack, backup, all, "--incremental"))).toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("another event at position"),
    });
    expect(readFileSync(join(all, MANIFEST), "utf8")).toBe(before);
    expect(await verify(env)).toMatchObject({ code: 0 });
  }, 60_000);
});

describe("in a file,", () => {
  let env: Env;
  beforeEach(async () => {
    env = await inFiles(folder);
    await add(env, "101", "ann_builds");
    await back(env);
    await add(env, "102", "bob");
    await back(env);
  });

  test("the log says that a backup was made, and that one was rehearsed", async () => {
    expect(await run(env, restoreCommand, all, "--rehearse")).toMatchObject({ code: 0, err: "" });
    const recorded = await withLog(env, (log) =>
      Array.fromAsync(log.read({ types: ["BackupMade", "BackupRehearsed"] }), ({ type }) => type),
    );
    expect(recorded).toEqual(["BackupMade", "BackupMade", "BackupRehearsed"]);
  });

  test("what a killed backup left is removed by the next one", async () => {
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

  test("after a key rotation the folder is refused, and says to name another one", async () => {
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

  test("one backup at a time writes to a folder", async () => {
    const release = takeOwnership(join(all, "backup"), "another", Date.now());
    expect(await refusal(run(env, backup, all, "--incremental"))).toMatchObject({
      kind: "busy",
      message: expect.stringContaining("another backup into"),
    });
    release();
    expect(await back(env)).toMatchObject({ number: 3 });
  });

  test("a folder with other content is refused, as is a single backup", async () => {
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

  test("each file that is altered or missing is named, and nothing is restored of it", async () => {
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
  }, 60_000);

  test("a manifest that is altered, or made with another master key, proves nothing", async () => {
    const text = readFileSync(join(all, MANIFEST), "utf8");
    const other = { ...env, REACHLOG_KEY: Buffer.alloc(32, 8).toString("base64") };
    expect(await refusal(verify(other))).toMatchObject({ kind: "configuration" });
    writeFileSync(join(all, MANIFEST), text.replace('"version":"', '"version":"9'));
    expect(await refusal(verify(env))).toMatchObject({ kind: "invalid", message: expect.stringContaining(MANIFEST) });
  });
});
