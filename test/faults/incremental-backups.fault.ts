import { expect, test } from "bun:test";
import { randomInt } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { newDatabase } from "eventstore-lite/testing";
import { backup } from "../../src/commands/backup-migrate-and-archive.ts";
import { restoreCommand } from "../../src/commands/restore-and-clock-corrected.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import type { OpenedLog } from "../../src/privacy/open-log.ts";
import { capture, withLog } from "../harness/capture-command.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { openInstallation } from "../harness/process.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";
import { mountFailingDisk, mountSmallDisk } from "./small-and-failing-disks.ts";
import { has, isRoot } from "./required-tools.ts";

const REACHLOG_KEY = Buffer.alloc(32, 7).toString("base64");
const DAY_MS = 86_400_000;
const START_MS = Date.parse("2026-01-05T08:00:00.000Z");

const DAYS = 30;
const CLICKS = 1_000;
const PEOPLE = 30;
const POSITIONS = 20;
const FLIPS = 500;
const KILLS = 200;
const CUTS = 40;

type Env = Record<string, string>;

const run = (env: Env, command: MakeCommand, ...args: string[]) => capture(command, args, { env });

let places = 0;
const inFile = (folder: TemporaryFolder): Env => ({
  REACHLOG_KEY,
  DATABASE_URL: `sqlite:${folder.file(`data-${(places += 1)}/log.sqlite`)}`,
});

const AGENTS = [
  "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X)",
  "Mozilla/5.0 (X11; Linux x86_64; rv:146.0)",
  "curl/8.9",
];

/** Appends a day of clicks, each with its address and user agent, and some new recipients. */
function appendDay(env: Env, day: number, clicks = CLICKS, people = PEOPLE): Promise<void> {
  let ms = START_MS + day * DAY_MS;
  const append = async (log: OpenedLog): Promise<void> => {
    const eventLog = createEventLog(log, () => Bun.randomUUIDv7());
    const added = Array.from({ length: people }, (_, one) =>
      addedOf({ id: `${day}000${one}`, username: `user_${day}_${one}` }, { basis: "opt_in" }),
    );
    if (people > 0) await eventLog.append(STREAMS.outreach, added, {});
    const appends = Array.from({ length: clicks }, (_, one) => {
      const link = `l${one % 40}`;
      const ip = `203.0.${randomInt(256)}.${randomInt(256)}`;
      const click = clickOf({ short_code: link, channels: ["chat"], ip, user_agent: AGENTS[one % AGENTS.length]! });
      const options = one % 5 === 0 ? { key: `click/${Bun.randomUUIDv7()}` } : {};
      return eventLog.append(STREAMS.link("go.example", link), [click], { caller: "tester" }, options);
    });
    await Promise.all(appends);
  };
  return withLog(env, append, { clock: () => (ms += 50) });
}

interface Made {
  readonly position: number;
  readonly hash: string;
  readonly bytes: number;
}

async function back(env: Env, folder: string): Promise<Made> {
  const { out, code, err } = await run(env, backup, folder, "--incremental", "--json");
  if (code !== 0) throw new Error(err);
  return JSON.parse(out) as Made;
}

/** Returns the size in bytes of these events in the canonical form that the hashes cover. */
async function bytesBetween(env: Env, from: number, to: number): Promise<number> {
  return withLog(env, async (log) => {
    let bytes = 0;
    for await (const events of log.readCanonical({ from, to })) for (const event of events) bytes += event.length + 1;
    return bytes;
  });
}

const segmentsIn = (folder: string): string[] =>
  readdirSync(join(folder, "segments"))
    .toSorted()
    .map((name) => join(folder, "segments", name));
const sizeOf = (files: readonly string[]): number => files.reduce((sum, file) => sum + readFileSync(file).length, 0);

test(`${DAYS} daily incremental backups stay small and restore each day and ${POSITIONS} positions exactly`, async () => {
  using folder = temporaryFolder();
  const env = inFile(folder);
  const all = folder.file("all");
  const made: Made[] = [];
  for (let day = 0; day < DAYS; day += 1) {
    await appendDay(env, day);
    made.push(await back(env, all));
  }
  const last = made.at(-1)!;
  const dayBytes = await bytesBetween(env, made.at(-2)!.position + 1, last.position);
  const segments = segmentsIn(all);
  const eventBytes = await bytesBetween(env, 1, last.position);
  const log = env["DATABASE_URL"]!.slice("sqlite:".length);
  const logBytes = sizeOf([log, `${log}-wal`].filter((file) => existsSync(file)));
  const [ofEvents, ofLog] = [eventBytes, logBytes].map((bytes) => ((100 * sizeOf(segments)) / bytes).toFixed(1));
  console.log(
    `backup ${DAYS}: ${last.bytes} bytes for a day of ${dayBytes} (${(last.bytes / dayBytes).toFixed(2)}), ` +
      `backup 2: ${made[1]!.bytes}; segments are ${ofEvents} % of the events' bytes, ${ofLog} % of the log's file`,
  );
  expect(segments).toHaveLength(DAYS);
  expect(last.bytes).toBeLessThanOrEqual(1.2 * dayBytes);
  expect(sizeOf(segments)).toBeLessThanOrEqual(0.35 * logBytes);

  const positions = Array.from({ length: POSITIONS }, () => 1 + randomInt(last.position));
  const heads = await withLog(env, (source) =>
    Promise.all(positions.map(async (position) => ({ position, hash: await source.hashAt(position) }))),
  );
  const wanted = [
    ...made.map((head, index) => ({ head, choice: ["--backup", String(index + 1)] })),
    ...heads.map((head) => ({ head, choice: ["--as-of", String(head.position)] })),
  ];
  for (const { head, choice } of wanted) {
    using other = temporaryFolder();
    const place = inFile(other);
    expect(await run(place, restoreCommand, all, ...choice)).toMatchObject({ code: 0 });
    const { position, hash } = await withLog(place, (restored) => restored.head());
    expect({ position, hash }).toEqual({ position: head.position, hash: head.hash! });
  }
});

test(`a verification names the segment of each of ${FLIPS} flipped bits and each missing segment`, async () => {
  using folder = temporaryFolder();
  const env = inFile(folder);
  const all = folder.file("all");
  for (let day = 0; day < 3; day += 1) {
    await appendDay(env, day, 100, 5);
    await back(env, all);
  }
  const verify = () => run(env, backup, all, "--verify");
  expect(await verify()).toMatchObject({ code: 0 });
  const files = segmentsIn(all);
  let named = 0;
  for (let flip = 0; flip < FLIPS; flip += 1) {
    const file = files[flip % files.length]!;
    const bytes = readFileSync(file);
    const altered = Buffer.from(bytes);
    altered[randomInt(bytes.length)]! ^= 1 << randomInt(8);
    writeFileSync(file, altered);
    const { code, out } = await verify();
    if (code === 1 && out.includes(basename(file))) named += 1;
    writeFileSync(file, bytes);
  }
  let missing = 0;
  for (const file of files) {
    renameSync(file, `${file}.away`);
    if ((await verify()).out.includes(`${basename(file)} is missing`)) missing += 1;
    renameSync(`${file}.away`, file);
  }
  console.log(`bits flipped in segments ${FLIPS}: named ${named}; missing segments ${files.length}: named ${missing}`);
  expect([named, missing]).toEqual([FLIPS, files.length]);
  expect(await verify()).toMatchObject({ code: 0 });
});

test.each([
  ["a file", async (folder: TemporaryFolder) => inFile(folder)],
  ["PostgreSQL", async () => ({ REACHLOG_KEY, DATABASE_URL: await newDatabase() })],
])(`backups of a log in %s lose and duplicate nothing after ${KILLS} times kill -9`, async (engine, make) => {
  await using world = await openInstallation();
  using folder = temporaryFolder();
  const env: Env = await make(folder);
  const all = folder.file("all");
  await appendDay(env, 0, 50, 2);
  await back(env, all);
  const kept = (): string =>
    segmentsIn(all)
      .map((file) => `${basename(file)} ${Bun.hash(readFileSync(file))}`)
      .join();
  let [killed, left] = [0, 0];
  /**
   * Latest time in ms at which a backup is killed, counted from its start. It becomes shorter when a backup ended
   * before its kill, so that kills are spread over the whole backup.
   */
  let reachMs = 60;
  for (let kill = 0; kill < KILLS; kill += 1) {
    await appendDay(env, 1 + kill / KILLS, 5, 1);
    const before = kept();
    const child = world.start(["backup", all, "--incremental"], env);
    while (!existsSync(join(all, "backup.owner")) && child.exitCode === null) await Bun.sleep(1);
    await Bun.sleep(Math.random() * reachMs);
    child.kill("SIGKILL");
    await child.exited;
    if (child.signalCode === "SIGKILL") killed += 1;
    if (existsSync(join(all, "backup.owner"))) left += 1;
    else reachMs = Math.max(5, reachMs - 1);
    const made = await back(env, all);
    expect(kept().startsWith(before)).toBe(true);
    expect(await run(env, backup, all, "--verify")).toMatchObject({
      code: 0,
      out: expect.stringContaining(made.hash),
    });
  }
  const last = await back(env, all);
  const place = inFile(folder);
  expect(await run(place, restoreCommand, all)).toMatchObject({ code: 0 });
  const idsOf = (one: Env) =>
    withLog(one, (log) => Array.fromAsync(log.readStored({ to: last.position }), ({ id, hash }) => `${id} ${hash}`));
  const [ids, wanted] = [await idsOf(place), await idsOf(env)];
  console.log(`kill -9 of backups of ${engine} ${KILLS}: killed while running ${killed}, holding the folder ${left}`);
  expect(ids).toEqual(wanted);
  expect(new Set(ids).size).toBe(ids.length);
  expect(left).toBeGreaterThan(KILLS / 2);
});

test.skipIf(!isRoot || !has("xfs_io"))(
  `a printed backup survives ${CUTS} power cuts during, and ${CUTS} after, a backup`,
  async () => {
    await using world = await openInstallation();
    await using disk = await mountFailingDisk();
    using folder = temporaryFolder();
    const env = inFile(folder);
    const all = join(disk.path, "all");
    const unsynced = join(disk.path, "unsynced");
    let [during, gone] = [0, 0];
    const cut = async (heads: readonly string[]): Promise<void> => {
      writeFileSync(unsynced, "a control: this file is never synced");
      await disk.cutPower();
      if (!existsSync(unsynced) || readFileSync(unsynced).length === 0) gone += 1;
      rmSync(unsynced, { force: true });
      const { code, out } = await run(env, backup, all, "--verify");
      expect(code).toBe(0);
      expect(heads).toContain(/ ([0-9a-f]{64})\n$/.exec(out)?.[1] ?? out);
    };
    let reachMs = 1_000;
    for (let one = 0; one < CUTS; one += 1) {
      await appendDay(env, one / CUTS, 5, 1);
      const made = await back(env, all);
      await cut([made.hash]);
      await appendDay(env, 1 + one / CUTS, 5, 1);
      const child = world.start(["backup", all, "--incremental", "--json"], env);
      while (!existsSync(join(all, "backup.owner")) && child.exitCode === null) await Bun.sleep(1);
      await Bun.sleep(Math.random() * reachMs);
      child.kill("SIGKILL");
      const printed = await new Response(child.stdout).text();
      await child.exited;
      // A backup that was killed before it printed anything may be complete nevertheless.
      const hashes = withLog(env, (log) =>
        Array.fromAsync(log.readStored({ from: made.position }), ({ hash }) => hash),
      );
      const heads = printed === "" ? await hashes : [(JSON.parse(printed) as Made).hash];
      if (existsSync(join(all, "backup.owner"))) during += 1;
      else reachMs *= 0.9;
      await cut(heads);
    }
    const place = inFile(folder);
    expect(await run(place, restoreCommand, all)).toMatchObject({ code: 0 });
    console.log(`power cuts of backups ${2 * CUTS}: ${during} during one; unsynced files ${2 * CUTS}: lost ${gone}`);
    // Each power cut affects one unsynced file. On a slow machine the kernel may have written that file to the disk
    // before the cut, so a few files may survive.
    expect(gone).toBeGreaterThan(1.9 * CUTS);
    expect(during).toBeGreaterThan(CUTS / 4);
  },
);

/**
 * Maximum size of a segment in bytes: a segment reaches its limit of canonical bytes with its last event, so one event
 * is added.
 */
const SEGMENT_BYTES = 64 * 1024 * 1024 + 16_384;
const LONG_CLICKS = 34_000;

test("a backup of more than 64 MiB has several segments and restores completely", async () => {
  using folder = temporaryFolder();
  const env = inFile(folder);
  const all = folder.file("all");
  await withLog(env, async (log) => {
    const eventLog = createEventLog(log, () => Bun.randomUUIDv7());
    for (let done = 0; done < LONG_CLICKS; done += 1_000) {
      const clicks = Array.from({ length: 1_000 }, (_, one) =>
        clickOf({ original_url: `https://shop.example/?q=${done + one}${"x".repeat(3_900)}`, channels: ["chat"] }),
      );
      await eventLog.append(STREAMS.link("go.example", "long"), clicks, {});
    }
  });
  const made = await back(env, all);
  const ranges = segmentsIn(all).map((file) => basename(file, ".zst").split("-").map(Number) as [number, number]);
  expect(ranges.length).toBeGreaterThanOrEqual(2);
  for (const [first, last] of ranges) expect(await bytesBetween(env, first, last)).toBeLessThanOrEqual(SEGMENT_BYTES);
  expect(await run(env, backup, all, "--verify")).toMatchObject({ code: 0 });
  const place = inFile(folder);
  expect(await run(place, restoreCommand, all)).toMatchObject({ code: 0 });
  expect(await withLog(place, (log) => log.head())).toMatchObject({ position: made.position, hash: made.hash });
  console.log(`one backup of ${made.position} long events: ${ranges.length} segments, restored as they were`);
});

test.skipIf(!isRoot)(
  "a disk that fills during a backup keeps former backups whole, and the next completes",
  async () => {
    await using disk = await mountSmallDisk(8);
    using folder = temporaryFolder();
    const env = inFile(folder);
    const all = join(disk.path, "all");
    await appendDay(env, 0, 100, 5);
    const first = await back(env, all);
    await appendDay(env, 1, 20_000, 5);
    await disk.fill();
    const refused = await run(env, backup, all, "--incremental").catch((fault: unknown) => fault);
    expect(refused).toMatchObject({ message: expect.stringMatching(/ENOSPC|full/) });
    expect(await run(env, backup, all, "--verify")).toMatchObject({
      out: expect.stringContaining(first.hash),
      code: 0,
    });
    await disk.free();
    const next = await back(env, all);
    expect(await run(env, backup, all, "--verify")).toMatchObject({ out: expect.stringContaining(next.hash), code: 0 });
    expect(segmentsIn(all)).toHaveLength(2);
    console.log("a disk that fills during a backup: 1 refused, the former one whole, the next one complete");
  },
);

test("a Python program of 50 lines reads the segments, proves chain and root, and finds alterations", async () => {
  using folder = temporaryFolder();
  const env = inFile(folder);
  const all = folder.file("all");
  for (let day = 0; day < 3; day += 1) {
    await appendDay(env, day, 60, 5);
    await back(env, all);
  }
  const readme = readFileSync(join(import.meta.dirname, "../../docs/segments.md"), "utf8");
  const program = /```python\n([^`]*)```/.exec(readme)![1]!;
  expect(program.trim().split("\n").length).toBeLessThanOrEqual(50);
  const script = folder.file("segments.py");
  writeFileSync(script, program);
  const read = () => Bun.spawnSync(["python3", script, join(all, "segments")]);
  const { position, hash } = await withLog(env, async (log) => {
    const end = (await log.head()).position - 1;
    return { position: end, hash: await log.hashAt(end) };
  });
  const root = readFileSync(join(all, "secrets-000003", "head.txt"), "utf8").split("\n")[2]!;
  const found = read().stdout.toString().trim().split("\n");
  const events = found.slice(0, -1).map((line) => JSON.parse(line) as { position: number });
  expect(events.map((event) => event.position)).toEqual(Array.from({ length: position }, (_, at) => at + 1));
  expect(found.at(-1)).toBe(`${position} ${hash} ${Buffer.from(root, "base64").toString("hex")}`);
  const [file] = segmentsIn(all);
  const bytes = readFileSync(file!);
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(file!, bytes);
  expect(read().success).toBe(false);
});
