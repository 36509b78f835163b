// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { newDatabase } from "eventstore-lite/testing";
import { startS3, type S3Sandbox } from "../../sandbox/s3/server.ts";
import { audit as auditCommand } from "../../src/commands/audit.ts";
import { archive as archiveCommand, backup } from "../../src/commands/backup-migrate-and-archive.ts";
import { refuseArchive } from "../../src/backup/parse-backup-place.ts";
import { restoreCommand } from "../../src/commands/restore-and-clock-corrected.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { type Config, loadConfig } from "../../src/config/config.ts";
import { openSegmentStorage } from "../../src/networks/s3/open-segment-storage.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { capture, type Captured, withLog } from "../harness/capture-command.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";
import { contacts, forget } from "../harness/in-process/operation-commands.ts";
import { isWhole } from "../harness/case-count.ts";

type Env = Record<string, string>;

let folder: TemporaryFolder;
let s3: S3Sandbox;
let address: string;
let access: Env;
let env: Env;
beforeEach(async () => {
  folder = temporaryFolder();
  s3 = await startS3({ pageKeys: 2 });
  address = `s3://${s3.bucket}/reach`;
  access = {
    REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
    AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
    AWS_REGION: s3.region,
    AWS_ENDPOINT_URL: s3.endpoint,
  };
});
afterEach(async () => {
  await s3[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

let places = 0;
const inFiles = async (): Promise<Env> => ({
  ...access,
  DATABASE_URL: `sqlite:${folder.file(`data-${(places += 1)}/log.sqlite`)}`,
});
const onServer = async (): Promise<Env> => ({ ...access, DATABASE_URL: await newDatabase() });

const run = (one: Env, command: MakeCommand, ...args: string[]): Promise<Captured> =>
  capture(command, args, { env: one });
const refusal = (running: Promise<unknown>): Promise<unknown> => running.catch((fault: unknown) => fault);

const add = (one: Env, id: string, username: string) =>
  withLog(one, (log) =>
    createEventLog(log, () => Bun.randomUUIDv7()).append(
      STREAMS.outreach,
      [addedOf({ id, username }, { basis: "dm_first" })],
      {},
    ),
  );

interface Made {
  readonly number: number;
  readonly position: number;
  readonly hash: string;
}

async function back(one: Env = env): Promise<Made> {
  const { out, code } = await run(one, backup, address, "--incremental", "--json");
  expect(code).toBe(0);
  return JSON.parse(out) as Made;
}

const verify = (one: Env = env) => run(one, backup, address, "--verify");
const keys = () => [...s3.objects.keys()].toSorted();
const leftInScratch = () => readdirSync(tmpdir()).filter((name) => name.startsWith("reachlog-backups-"));

describe.each([
  ["files", inFiles, onServer],
  ["PostgreSQL", onServer, inFiles],
])("backups of a log on %s in a store", (_name, make, makeOther) => {
  test("add new events only, and are restored by number or position", async () => {
    env = await make();
    const before = leftInScratch();
    const made: Made[] = [];
    for (const [index, name] of ["ann_builds", "bob", "cas"].entries()) {
      await add(env, `10${index}`, name);
      const former = new Map(s3.objects);
      made.push(await back());
      expect(made.at(-1)!.number).toBe(index + 1);
      for (const [key, { body }] of former) {
        if (s3.objects.has(key)) expect(Buffer.compare(s3.objects.get(key)!.body, body)).toBe(0);
      }
    }
    expect(keys().filter((key) => key.includes("/segments/"))).toHaveLength(3);
    // Only the newest backup has files of keys and a full manifest. Other files of keys could still contain an erased
    // recipient's key.
    expect(keys().filter((key) => !key.includes("/segments/"))).toEqual([
      "reach/manifest-000001.json",
      "reach/manifest-000002.json",
      "reach/manifest-000003.json",
      expect.stringMatching(/^reach\/manifest-000003\.json\.[0-9a-f]{64}$/),
      ...["head.txt", "keys.sqlite", "signing-key.encrypted", "vault.sqlite"].map((file) =>
        expect.stringMatching(new RegExp(`^reach/secrets-000003/${file}\\.[0-9a-f]{64}$`)),
      ),
    ]);
    expect(await verify()).toMatchObject({
      code: 0,
      out: expect.stringContaining("3 backups in 3 segments are whole"),
    });
    const [first] = made as [Made];
    const last = made.at(-1)!;
    for (const [head, choice, place] of [
      [last, [], await make()],
      [first, ["--backup", "1"], await makeOther()],
      [first, ["--as-of", String(first.position)], await make()],
    ] as const) {
      expect(await run(place, restoreCommand, address, ...choice)).toMatchObject({ code: 0 });
      const { position, hash } = head;
      expect(await withLog(place, (log) => log.head())).toMatchObject({ position, hash });
    }
    expect(await run(env, restoreCommand, address, "--rehearse")).toMatchObject({ code: 0 });
    expect(leftInScratch()).toEqual(before);
  });

  test("keep a recipient forgotten, also when an earlier backup is restored", async () => {
    env = await make();
    await add(env, "101", "ann_builds");
    await back();
    expect(await run(env, forget, "ann_builds", "--yes")).toMatchObject({ code: 0 });
    await back();
    const place = await make();
    expect(await run(place, restoreCommand, address, "--backup", "1")).toMatchObject({ code: 0 });
    expect((await run(place, contacts, "--json")).out).not.toContain("ann_builds");
  });
});

describe("remote backups of a log in a file", () => {
  beforeEach(async () => {
    env = await inFiles();
    await add(env, "101", "ann_builds");
    await back();
    await add(env, "102", "bob");
  });

  test("complete one of two that run at the same time, and refuse the other as busy", async () => {
    const start = () => Promise.allSettled([1, 2].map(() => run(env, backup, address, "--incremental", "--json")));
    // Both backups succeed if one ends before the other one lists the objects, which may happen on a busy machine. The
    // test then starts two others.
    let both = await start();
    while (both.every(({ status }) => status === "fulfilled")) both = await start();
    expect(both.toSorted((a, b) => (a.status < b.status ? -1 : 1))).toMatchObject([
      { value: { code: 0 } },
      { reason: { kind: "busy", message: expect.stringContaining(`another backup into ${address}`) } },
    ]);
    expect(await verify()).toMatchObject({ code: 0 });
    const made = both.flatMap((one) => (one.status === "fulfilled" ? [JSON.parse(one.value.out) as Made] : []));
    expect((await back()).number).toBe(made[0]!.number + 1);
  });

  test("remove the objects of a killed backup", async () => {
    const left = [
      "reach/segments/0000000000000002-0000000000000009.zst",
      `reach/secrets-000002/keys.sqlite.${"0".repeat(64)}`,
    ];
    for (const key of left) s3.objects.set(key, { body: Buffer.from("half"), meta: {} });
    expect(await back()).toMatchObject({ number: 2 });
    expect(keys().filter((key) => left.includes(key))).toEqual([]);
    expect(await verify()).toMatchObject({ code: 0 });
  });

  test("leave the former backup whole if the store refuses a write", async () => {
    const { hash } = await withLog(env, (log) => log.head());
    for (const count of [1, 2, 3, 4, 5]) {
      const puts = s3.requests.filter((one) => one.startsWith("PUT")).length;
      s3.faults.push({ method: "PUT", kind: "denied", count: 1, after: count });
      expect(await refusal(run(env, backup, address, "--incremental"))).toMatchObject({
        kind: "configuration",
        message: expect.stringContaining("403 AccessDenied"),
      });
      expect(s3.requests.filter((one) => one.startsWith("PUT")).length - puts).toBe(count + 1);
      expect(await verify()).toMatchObject({ code: 0, out: expect.stringContaining("1 backups in 1 segments") });
    }
    expect(await back()).toMatchObject({ hash, number: 2 });
    expect(await verify()).toMatchObject({ code: 0 });
  });

  test("are not restored if an object is altered or missing, and its address is reported", async () => {
    await back();
    for (const key of keys().filter((one) => !one.includes("manifest"))) {
      const object = s3.objects.get(key)!;
      const { body } = object;
      const name = key.replace(/\.[0-9a-f]{64}$/, "").slice("reach/".length);
      object.body = Buffer.from(body);
      object.body[body.length >> 1]! ^= 1;
      expect(await verify()).toMatchObject({
        code: 1,
        out: expect.stringContaining(`${address}/${name} does not match`),
      });
      s3.objects.delete(key);
      expect(await verify()).toMatchObject({ code: 1, out: expect.stringContaining(`${address}/${name} is missing`) });
      const place = await inFiles();
      expect(await refusal(run(place, restoreCommand, address))).toMatchObject({
        message: expect.stringContaining(`${address}/${name}`),
      });
      expect(existsSync(place["DATABASE_URL"]!.slice("sqlite:".length))).toBe(false);
      s3.objects.set(key, { ...object, body });
    }
    expect(await verify()).toMatchObject({ code: 0 });
  });

  test("are refused for another log, another master key or a wrong address, without secrets", async () => {
    const other = await inFiles();
    await add(other, "200", "dan");
    const stranger = { ...env, REACHLOG_KEY: Buffer.alloc(32, 8).toString("base64") };
    const { AWS_SECRET_ACCESS_KEY: _, AWS_ACCESS_KEY_ID: __, ...without } = env;
    const wrong = { ...env, AWS_SECRET_ACCESS_KEY: "another-secret-of-an-access-key" };
    const cases = [
      [() => run(other, backup, address, "--incremental"), `${address} holds backups of the log`],
      [() => verify(stranger), address],
      [() => run(env, backup, address), "accepts only incremental backups"],
      [() => run(env, backup, "s3://b/../x", "--incremental"), "is no address"],
      [() => run(other, restoreCommand, `${address}-not`), `${address}-not holds no backup`],
      [() => run(without, backup, address, "--incremental"), "set AWS_ACCESS_KEY_ID"],
      [() => run(wrong, backup, address, "--incremental"), "check AWS_SECRET_ACCESS_KEY"],
    ] as const;
    const before = keys();
    for (const [refused, sentence] of cases) {
      const fault = (await refusal(refused())) as Error;
      expect(fault.message).toContain(sentence);
      for (const hidden of [wrong.AWS_SECRET_ACCESS_KEY, access["AWS_SECRET_ACCESS_KEY"]!, tmpdir()]) {
        expect(fault.message).not.toContain(hidden);
      }
    }
    expect(keys()).toEqual(before);
  });
});

/**
 * Returns the key and content of each object in the simulated bucket whose key `picked` accepts, to check what a backup
 * or a refused command left unchanged.
 */
const contentsOf = (picked: (key: string) => boolean) =>
  [...s3.objects].filter(([key]) => picked(key)).map(([key, { body }]) => [key, body.toString("latin1")]);

describe("foreign objects", () => {
  beforeEach(async () => {
    env = await inFiles();
    await add(env, "101", "ann_builds");
  });

  const OTHERS = [
    "reach/notes.txt",
    "reach/segments/0000000000000001-0000000000000002-0123456789abcdef.zst",
    "reach/segments/notes.txt",
    "reach/secrets-000001/notes.txt",
    "reach/manifest.json",
    "reach/manifest-000001.json.bak",
    "reach/other/manifest-000001.json",
    "reach/segments/manifest-000001.json",
  ];

  test.each(OTHERS)("such as %s below the address are kept, and no backup is added", async (other) => {
    for (const isFirst of [true, false]) {
      if (!isFirst) await back();
      s3.objects.set(other, { body: Buffer.from("theirs"), meta: {} });
      const before = contentsOf(() => true);
      expect(await refusal(run(env, backup, address, "--incremental"))).toMatchObject({
        kind: "conflict",
        message: expect.stringContaining(`${address} holds ${other.slice("reach/".length)}`),
      });
      expect(contentsOf(() => true)).toEqual(before);
      s3.objects.delete(other);
    }
    expect(await verify()).toMatchObject({ code: 0 });
  });

  test("in the bucket's root are kept, and a backup to the root is refused", async () => {
    s3.objects.set("photos/1.jpg", { body: Buffer.from("theirs"), meta: {} });
    expect(await refusal(run(env, backup, `s3://${s3.bucket}`, "--incremental"))).toMatchObject({ kind: "conflict" });
    expect(keys()).toEqual(["photos/1.jpg"]);
  });

  test("from another log's backups below the address are kept", async () => {
    const other = await inFiles();
    await add(other, "200", "dan");
    const inner = `${address}/inner`;
    expect(await run(other, backup, inner, "--incremental")).toMatchObject({ code: 0 });
    const before = contentsOf(() => true);
    expect(await refusal(run(env, backup, address, "--incremental"))).toMatchObject({ kind: "conflict" });
    expect(contentsOf(() => true)).toEqual(before);
    expect(await run(other, backup, inner, "--verify")).toMatchObject({ code: 0 });
  });

  test("from another log's unfinished first backup are kept, and refused", async () => {
    const other = await inFiles();
    await add(other, "200", "dan");
    s3.faults.push({ method: "PUT", kind: "denied", count: 1, after: 3 });
    await refusal(run(other, backup, address, "--incremental"));
    const before = contentsOf(() => true);
    expect(before).toHaveLength(3);
    expect(await refusal(run(env, backup, address, "--incremental"))).toMatchObject({
      kind: "conflict",
      message: expect.stringContaining(`${address} holds`),
    });
    expect(contentsOf(() => true)).toEqual(before);
    expect(await run(other, backup, address, "--incremental")).toMatchObject({ code: 0 });
  });

  test.each([
    ["the same", "reach", "reach"],
    ["below the backups", "reach/segments", "reach"],
    ["the bucket's root", "", "reach"],
    ["above the backups", "reach", "reach/all"],
  ])("in an archive that is %s are protected: the backup is refused", async (_name, archive, backups) => {
    const archiving = { ...env, ARCHIVE_FOLDER: `s3://${s3.bucket}/${archive}` };
    for (const isEmpty of [true, false]) {
      if (!isEmpty) expect(await run(archiving, archiveCommand, "--before", "2")).toMatchObject({ code: 0 });
      const before = keys();
      for (const slash of ["", "/"]) {
        expect(
          await refusal(run(archiving, backup, `s3://${s3.bucket}/${backups}${slash}`, "--incremental")),
        ).toMatchObject({ kind: "conflict", message: expect.stringContaining("ARCHIVE_FOLDER") });
      }
      expect(keys()).toEqual(before);
    }
    expect(await run(archiving, auditCommand, "verify")).toMatchObject({ code: 0 });
  });

  test("in an archive with an address that begins like the backups' are no obstacle", async () => {
    const archiving = { ...env, ARCHIVE_FOLDER: `${address}-archive` };
    await add(archiving, "102", "bob");
    expect(await run(archiving, archiveCommand, "--before", "2")).toMatchObject({ code: 0 });
    const archived = contentsOf((key) => key.includes("archive"));
    for (let made = 1; made <= 3; made += 1) expect(await back(archiving)).toMatchObject({ number: made });
    expect(contentsOf((key) => key.includes("archive"))).toEqual(archived);
  });
});

/**
 * Restores each of these backups by the number that its command reported, and compares the head of the restored log.
 */
async function restoreEach(made: readonly Made[]): Promise<void> {
  expect(await verify()).toMatchObject({ code: 0 });
  for (const { number, position, hash } of made) {
    const place = await inFiles();
    expect(await run(place, restoreCommand, address, "--backup", String(number))).toMatchObject({ code: 0 });
    expect(await withLog(place, (log) => log.head())).toMatchObject({ position, hash });
  }
}

describe("concurrent backups", () => {
  let first: Made;
  beforeEach(async () => {
    env = await inFiles();
    await add(env, "101", "ann_builds");
    first = await back();
    await add(env, "102", "bob");
  });

  /**
   * Starts a backup and holds it at its first request that matches `form`: when the request has arrived at the store,
   * or when it is done there. `release` lets the backup continue.
   */
  async function startHeld(form: RegExp, moment: "arrived" | "done" = "arrived") {
    const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    s3.pause = async (request, at) => {
      if (at !== moment || !form.test(request)) return;
      s3.pause = async () => {};
      held.resolve();
      await released.promise;
    };
    const running = refusal(run(env, backup, address, "--incremental", "--json"));
    await held.promise;
    return { running, release: released.resolve };
  }

  /** Moments at which a backup is held. An ordinary test run tries only the first three. */
  const MOMENTS = [
    ["before it lists", /^GET $/, "arrived"],
    ["before its keys", /^PUT .*keys/, "arrived"],
    ["before the claim that completes it", /^PUT .*manifest-\d+\.json$/, "arrived"],
    ["after it has listed", /^GET $/, "done"],
    ["after it has read the manifest", /^GET .*manifest-\d+\.json\./, "done"],
    ["before its first file", /^PUT /, "arrived"],
    ["before its manifest", /^PUT .*manifest/, "arrived"],
  ] as const;

  test.each(MOMENTS.slice(0, isWhole ? undefined : 3))(
    "destroy no backup if one hung %s during three others",
    async (_name, form, moment) => {
      const one = await startHeld(form, moment);
      const made: Made[] = [first];
      for (const id of ["103", "104", "105"]) {
        await add(env, id, `name_${id}`);
        made.push(await back());
      }
      one.release();
      const ended = await one.running;
      // A backup that is held at its first listing of the store has read no manifest yet, so it succeeds after the
      // three others. A backup held at a later request was overtaken by them, so it ends with the error `busy`.
      if (form.source === "^GET $") expect(ended).toMatchObject({ code: 0 });
      else expect(ended).toMatchObject({ kind: "busy" });
      await restoreEach(made.slice(-1));
      await add(env, "106", "eve");
      await restoreEach([...made, await back()]);
    },
  );

  test("are busy if a listed manifest cannot be read, and change nothing", async () => {
    const before = contentsOf(() => true);
    const { get } = s3.objects;
    s3.objects.get = (key) => (key.includes("manifest") ? undefined : get.call(s3.objects, key));
    expect(await refusal(run(env, backup, address, "--incremental"))).toMatchObject({
      kind: "busy",
      message: expect.stringContaining("manifest-000001.json"),
    });
    s3.objects.get = get;
    expect(contentsOf(() => true)).toEqual(before);
    expect(await back()).toMatchObject({ number: 2 });
  });

  test.each([
    ["names an earlier manifest", "manifest-000001.json"],
    ["names a manifest that holds an earlier backup", "manifest-000002.json"],
    ["is an earlier build's manifest", undefined],
  ])("are refused if a claim %s, and change nothing", async (_name, file) => {
    const [key, manifest] = [...s3.objects].find(([name]) => name.startsWith("reach/manifest-000001.json."))!;
    const name = file === undefined ? '{"format":2}' : key.slice("reach/".length).replace("manifest-000001.json", file);
    s3.objects.set(`reach/${name}`, manifest);
    const storage = openSegmentStorage(
      address,
      loadConfig(env, () => ""),
    );
    await storage.write("manifest-000002.json", Buffer.from(`${name}\n`));
    const before = contentsOf(() => true);
    for (const refused of [() => run(env, backup, address, "--incremental"), () => verify()]) {
      expect(await refusal(refused())).toMatchObject({ kind: file === undefined ? expect.any(String) : "damaged" });
    }
    expect(contentsOf(() => true)).toEqual(before);
  });

  test("keep backups without their claims", async () => {
    await back();
    for (const key of keys()) if (/manifest-\d+\.json$/.test(key)) s3.objects.delete(key);
    const before = contentsOf(() => true);
    expect(await refusal(run(env, backup, address, "--incremental"))).toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("no manifest that names it"),
    });
    expect(contentsOf(() => true)).toEqual(before);
  });

  test("are refused if a segment of earlier backups is missing", async () => {
    const segment = keys().find((key) => key.includes("/segments/"))!;
    const kept = s3.objects.get(segment)!;
    s3.objects.delete(segment);
    expect(await refusal(run(env, backup, address, "--incremental"))).toMatchObject({
      kind: "damaged",
      message: expect.stringContaining(`${address}/segments/0000000000000001-0000000000000001.zst is missing`),
    });
    s3.objects.set(segment, kept);
    expect(await verify()).toMatchObject({ code: 0, out: expect.stringContaining("1 backups") });
  });

  test("let a reader continue with the next backup if that backup removed the files being read", async () => {
    const place = await inFiles();
    s3.pause = async (request, at) => {
      if (at !== "arrived" || !/^GET .*secrets/.test(request)) return;
      s3.pause = async () => {};
      await back();
    };
    expect(await run(place, restoreCommand, address)).toMatchObject({ code: 0 });
    s3.pause = async (request, at) => {
      if (at !== "arrived" || !/^GET .*secrets/.test(request)) return;
      s3.pause = async () => {};
      await back();
    };
    expect(await verify()).toMatchObject({ code: 0, out: expect.stringContaining("3 backups") });
  });
});

test("each backup is found and former keys are removed although the store lists changes late", async () => {
  await s3[Symbol.asyncDispose]();
  s3 = await startS3({ pageKeys: 2, listLag: () => 10_000 });
  access = { ...access, AWS_ENDPOINT_URL: s3.endpoint };
  env = await inFiles();
  const made: Made[] = [];
  for (const name of ["ann_builds", "bob", "cas"]) {
    await add(env, name, name);
    made.push(await back());
    expect(keys().filter((key) => key.includes("secrets-"))).toHaveLength(4);
  }
  await restoreEach(made);
});

describe("the remains of an interrupted backup", () => {
  beforeEach(async () => {
    env = await inFiles();
    await add(env, "101", "ann_builds");
  });

  test.each(isWhole ? [0, 1, 2, 3, 4, 5, 6] : [0, 3, 6])("do not prevent later backups: %i writes", async (writes) => {
    for (const number of [1, 2]) {
      const former = new Set(keys());
      s3.faults.push({ method: "PUT", kind: "denied", count: 1, after: writes });
      expect(await refusal(run(env, backup, address, "--incremental"))).toMatchObject({ kind: "configuration" });
      const left = keys().filter((key) => !former.has(key));
      expect(left).toHaveLength(writes);
      for (const key of left) s3.objects.set(key, { body: Buffer.from("half"), meta: {} });
      // The next backup takes the number of the failed one. It contains the failed one's events and the later ones.
      expect(await back()).toMatchObject({ number });
      await add(env, `20${number}`, `name_${number}`);
      expect(await verify()).toMatchObject({ code: 0, out: expect.stringContaining(`${number} backups`) });
    }
    await back();
    expect(keys().filter((key) => /secrets-|segments/.test(key))).toHaveLength(3 + 4);
  });

  test("are removed if an earlier build wrote the segment with other bytes", async () => {
    await back();
    const { position } = await withLog(env, (log) => log.head());
    const at = (number: number) => String(number).padStart(16, "0");
    const left = `reach/segments/${at(2)}-${at(position)}.zst`;
    s3.objects.set(left, { body: Buffer.from("other bytes"), meta: {} });
    expect(await back()).toMatchObject({ number: 2 });
    expect(keys()).not.toContain(left);
    expect(await verify()).toMatchObject({ code: 0 });
  });
});

test.each([
  ["s3://one/all", "s3://one/all", true],
  ["s3://one/all/", "s3://one/all/segments", true],
  ["s3://one", "s3://one/archive", true],
  ["s3://one/all/inner", "s3://one/all/", true],
  ["s3://one/all", "s3://one/allsorts", false],
  ["s3://one/all", "s3://two/all", false],
  ["s3://one/all", "/var/archive", false],
  ["/var/backups", "s3://one/all", false],
  ["/var/backups", "/var", true],
  ["/", "/var/archive", true],
  ["/var/backups", "/var/backups-old", false],
  ["/var/backups", undefined, false],
])("backups at %s with an archive at %p are refused: %p", (place, archive, isRefused) => {
  const log = { kind: "postgres", ...(archive === undefined ? {} : { archive }) } as unknown as Config["log"];
  const refuse = () => refuseArchive(place, { log });
  if (isRefused) expect(refuse).toThrow("ARCHIVE_FOLDER");
  else expect(refuse).not.toThrow();
});
