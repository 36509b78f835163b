import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { startS3, type S3Sandbox } from "../../sandbox/s3/server.ts";
import { backup } from "../../src/commands/backup-migrate-and-archive.ts";
import { restoreCommand } from "../../src/commands/restore-and-clock-corrected.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { playHistory, type Tally } from "../backup/remote-model/play-backup-history.ts";
import { capture, withLog } from "../harness/capture-command.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { ended, openInstallation } from "../harness/process.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";
import { isWhole } from "../harness/case-count.ts";

const BACKUPS = isWhole ? 200 : 24;
const PROCESSES = 2;
const HISTORIES = 2_000;

/**
 * Percentage of requests to the store that make the next request with the same method fail: with a 503, or with a
 * broken connection.
 */
const SLOW_DOWNS_PERCENT = 2;
const LIST_MS_MAX = 300;
const LIST_LAG_MAX = 60;
const KILLED_SHARE = 0.35;

type Env = Record<string, string>;

interface Made {
  readonly number: number;
  readonly position: number;
  readonly hash: string;
}

const accessTo = (s3: S3Sandbox): Env => ({
  REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
  AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
  AWS_REGION: s3.region,
  AWS_ENDPOINT_URL: s3.endpoint,
});

let places = 0;
const inFile = (folder: TemporaryFolder): string => `sqlite:${folder.file(`data-${(places += 1)}/log.sqlite`)}`;

let added = 0;
const add = (env: Env): Promise<unknown> =>
  withLog(env, (log) =>
    createEventLog(log, () => Bun.randomUUIDv7()).append(
      STREAMS.outreach,
      [addedOf({ id: String((added += 1)), username: `user_${added}` }, { basis: "opt_in" })],
      {},
    ),
  );

/** Adds objects of other programs and the backups of another log to the same bucket. */
async function fillWithOthers(s3: S3Sandbox, env: Env): Promise<() => string> {
  for (let one = 0; one < 40; one += 1) {
    const key = ["photos/", "reach-old/segments/", "reach", "archive/segments/"][one % 4]! + String(one);
    s3.objects.set(key, { body: Buffer.from(`theirs ${one}`), meta: {} });
  }
  await add(env);
  expect(await capture(backup, [`s3://${s3.bucket}/other`, "--incremental"], { env })).toMatchObject({ code: 0 });
  return () =>
    [...s3.objects]
      .filter(([key]) => !key.startsWith("reach/"))
      .map(([key, { body }]) => `${key} ${Bun.hash(body)}`)
      .toSorted()
      .join("\n");
}

test.each([
  ["a file", async (folder: TemporaryFolder) => inFile(folder)],
  ["PostgreSQL", async () => newDatabase()],
])(`each backup of a log in %s to one bucket restores despite kill -9, 503 and late lists`, async (engine, locate) => {
  await using world = await openInstallation();
  using folder = temporaryFolder();
  await using s3 = await startS3({
    pageKeys: 100,
    listLag: () => (Math.random() < 0.5 ? 0 : Math.floor(Math.random() * LIST_LAG_MAX)),
  });
  const access = accessTo(s3);
  const env: Env = { ...access, DATABASE_URL: await locate(folder) };
  const address = `s3://${s3.bucket}/reach`;
  const others = await fillWithOthers(s3, { ...access, DATABASE_URL: inFile(folder) });
  const before = others();
  await add(env);
  s3.pause = async (request, moment) => {
    if (moment === "arrived" && Math.random() * 100 < SLOW_DOWNS_PERCENT) {
      const [method] = request.split(" ") as ["GET" | "PUT" | "DELETE"];
      s3.faults.push({ method, kind: Math.random() < 0.8 ? "slow_down" : "cut_after", count: 1 });
    }
    await Bun.sleep(Math.random() * (request === "GET " ? LIST_MS_MAX : 5));
  };

  const made: Made[] = [];
  const codes = new Map<number, number>();
  let [left, killed, longestMs] = [BACKUPS, 0, 1_500];
  const backUp = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await add(env);
      const startedAt = performance.now();
      // TMPDIR is in the test's folder, because a killed backup leaves its copy there.
      const here = { ...env, TMPDIR: world.directory };
      const child = world.start(["backup", address, "--incremental", "--json"], here);
      if (Math.random() < KILLED_SHARE) {
        await Promise.race([Bun.sleep(Math.random() * longestMs), child.exited]);
        child.kill("SIGKILL");
      }
      const { code, out, err } = await ended(child);
      if (child.signalCode === "SIGKILL") {
        killed += 1;
        continue;
      }
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      codes.set(code, (codes.get(code) ?? 0) + 1);
      if (code === 0) made.push(JSON.parse(out) as Made);
      else expect({ code, err }).toMatchObject({ code: 75 });
    }
  };
  await Promise.all(Array.from({ length: PROCESSES }, backUp));
  // Requests of a killed process may still arrive at the store. One more backup proves that they do no harm.
  const { out } = await capture(backup, [address, "--incremental", "--json"], { env });
  made.push(JSON.parse(out) as Made);
  s3.pause = async () => {};
  s3.faults.splice(0);

  expect(await capture(backup, [address, "--verify"], { env })).toMatchObject({ code: 0 });
  for (const { number, position, hash } of made) {
    using scratch = temporaryFolder();
    const place = { ...access, DATABASE_URL: inFile(scratch) };
    expect(await capture(restoreCommand, [address, "--backup", String(number)], { env: place })).toMatchObject({
      code: 0,
    });
    expect(await withLog(place, (log) => log.head())).toMatchObject({ position, hash });
  }
  expect(others()).toBe(before);
  console.log(
    `backups of ${engine} into one bucket ${BACKUPS + 1}: made and restored ${made.length}, refused ${codes.get(75) ?? 0}, ` +
      `killed ${killed}; objects of others before and after: ${before.split("\n").length}`,
  );
  expect(made.length).toBeGreaterThan(BACKUPS / 4);
  expect(killed).toBeGreaterThan(BACKUPS / 10);
});

test(`each backup is readable in ${HISTORIES} histories of two writers and a reader on a store`, async () => {
  const first = Number(process.env["FAULT_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const tally: Tally = { made: 0, busy: 0, killed: 0, unavailable: 0, read: 0 };
  for (let seed = first; seed < first + HISTORIES; seed += 1) {
    await playHistory(seed, tally).catch((cause: unknown) => {
      throw new Error(`the history of FAULT_SEED=${seed}`, { cause });
    });
  }
  const { made, busy, killed, unavailable, read } = tally;
  console.log(
    `histories of backups in a store ${HISTORIES}: made ${made}, refused ${busy}, killed ${killed}, failed ${unavailable}, read ${read}`,
  );
});
