// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatPublicKey } from "eventstore-lite/proof";
import { newDatabase } from "eventstore-lite/testing";
import { startS3 } from "../../sandbox/s3/server.ts";
import { archive, backup } from "../../src/commands/backup-migrate-and-archive.ts";
import { replay } from "../../src/commands/replay.ts";
import { restoreCommand } from "../../src/commands/restore-and-clock-corrected.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { audit, clicks, contacts, forget, stats } from "../harness/in-process/operation-commands.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { capture, type Captured, withLog } from "../harness/capture-command.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { isWhole } from "../harness/case-count.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";

const REACHLOG_KEY = Buffer.alloc(32, 7).toString("base64");
const DAY_MS = 86_400_000;
const START_MS = Date.parse("2026-01-01T08:00:00.000Z");
const DAYS = 10;
const CLICKS = 20;
/** Events that `fill` appends for each day: a new recipient and the clicks. */
const DAY_EVENTS = 1 + CLICKS;

type Env = Record<string, string>;

let places = 0;
const ENGINES: readonly (readonly [string, (folder: TemporaryFolder) => Promise<Env>])[] = [
  [
    "in a file",
    async (folder) => ({
      REACHLOG_KEY,
      DATABASE_URL: `sqlite:${folder.file(`data-${(places += 1)}/log.sqlite`)}`,
    }),
  ],
  [
    "on a server",
    async (folder) => ({
      REACHLOG_KEY,
      DATABASE_URL: await newDatabase(),
      ARCHIVE_FOLDER: folder.file(`segments-${(places += 1)}`),
    }),
  ],
];

const run = (env: Env, command: MakeCommand, ...args: string[]): Promise<Captured> => capture(command, args, { env });

const refusal = (running: Promise<unknown>): Promise<string> => running.then(() => "none", String);

/** Appends ten days of events, each with one recipient and twenty clicks. Returns the position of the log's end. */
async function fill(env: Env): Promise<number> {
  let ms = START_MS;
  return withLog(
    env,
    async (log) => {
      const { append } = createEventLog(log, () => Bun.randomUUIDv7());
      for (let day = 0; day < DAYS; day += 1) {
        ms = START_MS + day * DAY_MS;
        await append(STREAMS.outreach, [addedOf({ id: `10${day}`, username: `user_${day}` }, { basis: "opt_in" })], {});
        for (let one = 0; one < CLICKS; one += 1) {
          ms += 1_000;
          const link = `l${one % 4}`;
          await append(STREAMS.link("go.example", link), [clickOf({ short_code: link, ip: `203.0.113.${one}` })], {});
        }
      }
      return (await log.head()).position;
    },
    { clock: () => ms },
  );
}

const segmentsOf = (env: Env): string =>
  env["ARCHIVE_FOLDER"] ?? env["DATABASE_URL"]!.slice("sqlite:".length).replace(/\.sqlite$/, ".segments");

/** Number of moments, from the log's beginning to its end, at which the states are asked for. */
const MOMENTS = isWhole ? 8 : 3;

/** Number of exports, the first commands of {@link sayAll}. */
const EXPORTS = 3;

/**
 * Runs commands that read the log up to `end`, and returns their outputs, which must be the same before and after
 * archiving. `exportsOnly`: runs only the first {@link EXPORTS} commands.
 */
async function sayAll(env: Env, end: number, { exportsOnly = false } = {}): Promise<readonly Captured[]> {
  const moments = Array.from({ length: MOMENTS }, (_, index) =>
    String(1 + Math.floor((index * (end - 1)) / (MOMENTS - 1))),
  );
  const commands: readonly (readonly [MakeCommand, ...string[]])[] = [
    [audit, "export", "--to", String(end)],
    [audit, "export", "--encrypted", "--to", String(end)],
    [audit, "export", "--to", String(end), "--type", "RecipientAdded"],
    [audit, "export", "--to", String(end), "--recipient", "user_3"],
    [audit, "export", "--to", "2026-01-04", "--from", "2026-01-02"],
    [audit, "show", "user_3", "--as-of", String(end)],
    [audit, "show", "go.example/l1", "--as-of", String(end)],
    [contacts, "--json", "--as-of", String(end)],
    [clicks, "--json", "--as-of", String(end)],
    ...moments.map((moment) => [stats, "--json", "--as-of", moment] as const),
    [stats, "--json", "--as-of", "2026-01-05T08:00:05Z"],
  ];
  const said: Captured[] = [];
  const asked = exportsOnly ? commands.slice(0, EXPORTS) : commands;
  for (const [command, ...args] of asked) said.push(await run(env, command, ...args));
  return said;
}

let folder: TemporaryFolder;
beforeEach(() => (folder = temporaryFolder()));
afterEach(() => folder[Symbol.dispose]());

describe.each(ENGINES)("a log %s", (_engine, make) => {
  let env: Env;
  let end: number;
  beforeEach(async () => {
    env = await make(folder);
    end = await fill(env);
  });

  test("gives the same output, proofs and replay after most of it is archived", async () => {
    const before = await sayAll(env, end);
    expect(before.map(({ code, err }) => [code, err])).toEqual(before.map(() => [0, ""]));
    const { code, out } = await run(env, archive, "--before", "2026-01-09", "--json");
    const position = 8 * DAY_EVENTS;
    expect([code, JSON.parse(out)]).toMatchObject([0, { position, events: position, segments: 1 }]);
    expect(readdirSync(segmentsOf(env))).toHaveLength(1);
    expect(await sayAll(env, end)).toEqual(before);
    const verified = JSON.parse((await run(env, audit, "verify", "--json")).out) as object;
    expect(verified).toMatchObject({ ok: true, checked: end + 1 });
    const proof = folder.file("5.tlog-proof");
    expect(await run(env, audit, "prove", "5", "--out", proof)).toMatchObject({ code: 0 });
    const key = formatPublicKey((await withLog(env, (log) => log.checkpoints.loadKey())).publicKey);
    expect(await run(env, audit, "check", proof, "--public-key", key)).toMatchObject({ code: 0 });
    expect(await run(env, replay)).toMatchObject({ code: 0 });
    const [event] = await withLog(env, (log) => Array.fromAsync(log.read({ types: ["EventsArchived"] })));
    expect(event).toMatchObject({ position: end + 1, data: { position, events: position, segments: 1 } });
  });

  test("is archived in steps, up to a time or a position", async () => {
    const steps = [
      ["--before", "2026-01-02T08:00:05Z"],
      ["--before", "50"],
      ["--before", "40"],
      ["--before", String(end)],
    ].map((args) => async () => JSON.parse((await run(env, archive, ...args, "--json")).out) as object);
    const [first, second, third, last] = steps;
    expect(await first!()).toMatchObject({ position: DAY_EVENTS + 5, segments: 1 });
    expect(await second!()).toMatchObject({ position: 49, events: 49 - DAY_EVENTS - 5 });
    expect(await third!()).toEqual({ position: 49, events: 0, segments: 0, bytes: 0 });
    expect(await last!()).toMatchObject({ position: end - 1 });
    expect(await run(env, audit, "verify")).toMatchObject({ code: 0 });
    expect(await refusal(run(env, archive, "--before", "yesterday"))).toContain("a moment is a position");
  });

  test("erases an archived recipient by deleting the keys, and leaves the segments unchanged", async () => {
    await run(env, archive, "--before", String(end));
    const bytes = () => readdirSync(segmentsOf(env)).map((name) => readFileSync(join(segmentsOf(env), name)));
    const before = bytes();
    const shown = () => run(env, audit, "export", "--to", "1");
    expect((await shown()).out).toContain("user_0");
    expect(await run(env, forget, "user_0", "--yes")).toMatchObject({ code: 0 });
    expect((await shown()).out).not.toContain("user_0");
    expect(bytes()).toEqual(before);
    expect(await run(env, audit, "verify")).toMatchObject({ code: 0 });
  });

  test("with archived events is backed up, whole and incrementally, and restored", async () => {
    const [whole, all] = [folder.file("whole"), folder.file("all")];
    expect(await run(env, backup, all, "--incremental")).toMatchObject({ code: 0 });
    await run(env, archive, "--before", String(end - 5));
    const before = await sayAll(env, end, { exportsOnly: true });
    expect(await run(env, backup, whole)).toMatchObject({ code: 0 });
    expect(await run(env, backup, all, "--incremental")).toMatchObject({ code: 0 });
    for (const from of [whole, all]) {
      const place = await make(folder);
      expect(await run(place, restoreCommand, from)).toMatchObject({ code: 0 });
      expect(await sayAll(place, end, { exportsOnly: true })).toEqual(before);
      expect(await withLog(place, (log) => log.archived())).toEqual([]);
    }
  });

  test("with a missing segment reports its name, reads the other segments and accepts events", async () => {
    await run(env, archive, "--before", "101");
    await run(env, archive, "--before", String(end));
    const [first] = readdirSync(segmentsOf(env)).toSorted();
    const file = join(segmentsOf(env), first!);
    renameSync(file, `${file}.away`);
    const verified = await run(env, audit, "verify");
    expect(verified).toMatchObject({
      code: 1,
      out: expect.stringContaining(`${first} of positions 1 to 100: it is missing`),
    });
    expect(await refusal(run(env, audit, "export"))).toContain(first!);
    expect(await run(env, audit, "export", "--from", "101")).toMatchObject({ code: 0 });
    const appended = await withLog(env, (log) =>
      createEventLog(log, () => Bun.randomUUIDv7()).append(STREAMS.link("go.example", "l0"), [clickOf()], {}),
    );
    expect(appended.version).toBe(5 * DAYS + 1);
    renameSync(`${file}.away`, file);
    writeFileSync(file, readFileSync(file).fill(0, 200, 210));
    expect(await run(env, audit, "verify")).toMatchObject({ code: 1, out: expect.stringContaining(first!) });
  });
});

test("segments are written to ARCHIVE_FOLDER, readable by the owner only", async () => {
  const env: Env = { ...(await ENGINES[0]![1](folder)), ARCHIVE_FOLDER: folder.file("elsewhere") };
  await fill(env);
  await run(env, archive, "--before", "100");
  const [name] = readdirSync(folder.file("elsewhere"));
  const modes = [folder.file("elsewhere"), join(folder.file("elsewhere"), name!)].map(
    (one) => statSync(one).mode & 0o777,
  );
  expect(modes).toEqual([0o700, 0o600]);
  expect(existsSync(segmentsOf({ DATABASE_URL: env["DATABASE_URL"]! }))).toBe(false);
});

test.each(ENGINES)(
  "a log %s archives to an object store, and reports a missing segment by name",
  async (_engine, make) => {
    await using s3 = await startS3({ pageKeys: 2 });
    const access: Env = {
      AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
      AWS_REGION: s3.region,
      AWS_ENDPOINT_URL: s3.endpoint,
    };
    const env: Env = { ...(await make(folder)), ...access, ARCHIVE_FOLDER: `s3://${s3.bucket}/segments` };
    const end = await fill(env);
    const before = await sayAll(env, end, { exportsOnly: true });
    s3.faults.push({ method: "PUT", kind: "cut_after", count: 1 }, { method: "GET", kind: "slow_down", count: 1 });
    await run(env, archive, "--before", "2026-01-09");
    const [key, ...others] = [...s3.objects.keys()];
    expect([key, others]).toEqual([expect.stringMatching(/^segments\//), []]);
    expect(await sayAll(env, end, { exportsOnly: true })).toEqual(before);
    expect(await run(env, audit, "verify")).toMatchObject({ code: 0 });
    s3.objects.delete(key!);
    const { code, out } = await run(env, audit, "verify");
    expect([code, out]).toEqual([1, expect.stringContaining(key!.slice("segments/".length))]);
    const { AWS_ACCESS_KEY_ID: _id, AWS_SECRET_ACCESS_KEY: _secret, ...locked } = env;
    expect(await refusal(run(locked, audit, "verify"))).toContain("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  },
);

test("a log on a server without ARCHIVE_FOLDER refuses to archive, with the reason", async () => {
  const { ARCHIVE_FOLDER: _, ...env } = await ENGINES[1]![1](folder);
  const end = await fill(env);
  expect(await refusal(run(env, archive, "--before", "100"))).toContain("without a place for its segments");
  expect(await withLog(env, (log) => log.archived())).toEqual([]);
  expect(await run(env, audit, "verify", "--json")).toMatchObject({ out: expect.stringContaining(`"checked":${end}`) });
});
