import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { randomBytes, randomInt } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { alteredIn, fateOf, type Finding, type History, historyOf, tallyOf } from "./damage-outcome.ts";
import { appendAnywhere, copyOf, imageOf } from "./fill-and-copy-test-log.ts";

const newLogPath = temporaryLogs();

const CASES = 40;
const GARBAGE_BYTES_MAX = 20_000;

/** The states in which a torn write can leave a write-ahead log. */
const damages: Record<string, (wal: Buffer, at: number) => Buffer> = {
  "cut off": (wal, at) => wal.subarray(0, at),
  "cut off, then garbage": (wal, at) => Buffer.concat([wal.subarray(0, at), randomBytes(randomInt(GARBAGE_BYTES_MAX))]),
  "garbage in the middle": (wal, at) => {
    randomBytes(Math.min(randomInt(1, GARBAGE_BYTES_MAX), wal.length - at)).copy(wal, at);
    return wal;
  },
  "zeroes from there on": (wal, at) => wal.fill(0, at),
  "one bit flipped": (wal, at) => {
    wal[at]! ^= 1 << randomInt(8);
    return wal;
  },
};

test("a torn write-ahead log alters no event unnoticed", async () => {
  const file = newLogPath();
  await using store = await openSqliteStore({ file });
  await appendAnywhere(store, 300, 100);
  const image = imageOf(file, "image");
  await expectNoneAltered("torn WAL", image, await historyOf(store), statSync(`${image}-wal`).size);
});

test("a torn write-ahead log with a half-finished checkpoint alters no event unnoticed", async () => {
  const file = newLogPath();
  await using first = await openSqliteStore({ file });
  await appendAnywhere(first, 3_000, 20);
  await first[Symbol.asyncDispose]();
  await using store = await openSqliteStore({ file });
  await appendAnywhere(store, 300, 100);
  const copiedBytes = statSync(`${file}-wal`).size;
  // While the reader reads, a checkpoint can copy only what is older than its transaction, and the write-ahead log
  // cannot start again from its head.
  const reader = new DatabaseSync(file, { readOnly: true });
  reader.exec("BEGIN; SELECT count(*) FROM events");
  await appendAnywhere(store, 300, 30_000);
  const image = imageOf(file, "image");
  reader.close();
  await expectNoneAltered("torn WAL, half copied", image, await historyOf(store), copiedBytes);
});

/**
 * Damages copies of a log at random places within the first bytes of its write-ahead log, and expects no silent
 * corruption.
 */
async function expectNoneAltered(what: string, image: string, history: History, bytes: number): Promise<void> {
  const all: Finding[] = [];
  for (const [name, damage] of Object.entries(damages)) {
    const findings: Finding[] = [];
    for (let count = 0; count < CASES; count += 1) {
      const copy = copyOf(image);
      writeFileSync(`${copy}-wal`, damage(readFileSync(`${copy}-wal`), randomInt(bytes)));
      findings.push(await fateOf(copy, history));
    }
    console.log(`${what}, ${name} ${CASES}: ${tallyOf(findings)}`);
    all.push(...findings);
  }
  // The damage hit the log's data at least once.
  expect(all.some(({ fate }) => fate !== "whole")).toBe(true);
  expect(alteredIn(all)).toEqual({});
}
