import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { randomInt } from "node:crypto";
import { copyFileSync, rmSync } from "node:fs";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { alteredIn, fateOf, type Finding, type History, historyOf, tallyOf } from "./damage-outcome.ts";
import { appendAnywhere, copyOf, imageOf } from "./fill-and-copy-test-log.ts";

const newLogPath = temporaryLogs();

const ROUNDS = 10;
const EVENTS_CLOSED = 2_000;
const EVENTS_OPEN_MAX = 300;
const CHARS = 100;

/**
 * One log at three times: with a write-ahead log, closed (all is in the database), and with another write-ahead log.
 */
interface Images {
  readonly early: string;
  readonly closed: string;
  readonly late: string;
  readonly history: History;
}

const attempts: Record<string, (copy: string, own: Images, other: Images) => void> = {
  "no WAL": (copy) => rmSync(`${copy}-wal`),
  "no WAL index": (copy) => rmSync(`${copy}-shm`),
  neither: (copy) => ["-wal", "-shm"].forEach((suffix) => rmSync(copy + suffix)),
  "an earlier WAL": (copy, { early }) => copyFileSync(`${early}-wal`, `${copy}-wal`),
  "an earlier WAL and no index": (copy, { early }) => {
    copyFileSync(`${early}-wal`, `${copy}-wal`);
    rmSync(`${copy}-shm`);
  },
  "an earlier index": (copy, { early }) => copyFileSync(`${early}-shm`, `${copy}-shm`),
  "an earlier database": (copy, { early }) => copyFileSync(early, copy),
  "a database of between": (copy, { closed }) => copyFileSync(closed, copy),
  "another log's WAL": (copy, _own, { late }) => copyFileSync(`${late}-wal`, `${copy}-wal`),
  "another log's index": (copy, _own, { late }) => copyFileSync(`${late}-shm`, `${copy}-shm`),
};

test("a missing, outdated or foreign file of a log alters no event unnoticed", async () => {
  const findings = new Map(Object.keys(attempts).map((name) => [name, [] as Finding[]]));
  for (let round = 0; round < ROUNDS; round += 1) {
    const [own, other] = [await createImages(), await createImages()];
    for (const [name, misplace] of Object.entries(attempts)) {
      const copy = copyOf(own.late);
      misplace(copy, own, other);
      findings.get(name)!.push(await fateOf(copy, own.history, [other.history]));
    }
  }
  for (const [name, own] of findings) console.log(`misplaced files, ${name} ${ROUNDS}: ${tallyOf(own)}`);
  expect(alteredIn([...findings.values()].flat())).toEqual({});
});

async function createImages(): Promise<Images> {
  const file = newLogPath();
  let early: string;
  {
    await using store = await openSqliteStore({ file });
    await appendAnywhere(store, EVENTS_CLOSED, CHARS);
    await appendAnywhere(store, randomInt(1, EVENTS_OPEN_MAX), CHARS);
    early = imageOf(file, "early");
  }
  const closed = imageOf(file, "closed");
  await using store = await openSqliteStore({ file });
  await appendAnywhere(store, randomInt(1, EVENTS_OPEN_MAX), CHARS);
  return { early, closed, late: imageOf(file, "late"), history: await historyOf(store) };
}
