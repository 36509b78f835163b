import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { StoreOwned } from "eventstore-lite/testing";
import { dirname, join } from "node:path";
import { newEvent, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { examine, FAULTLESS } from "./compare-log-with-ledger.ts";
import { createLedger } from "./record-answers-to-appends.ts";
import { type Program, startProgram } from "./start-program.ts";

const newLogPath = temporaryLogs();

const RIVALS = 20;
const ROUNDS = 5;

const STOPPED_MS = 3_000;

test(`exactly one of ${RIVALS} owners started at once wins, and again after its kill -9`, async () => {
  const file = newLogPath();
  const winners: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const rivals = Array.from({ length: RIVALS }, () =>
      startProgram("own-log-and-collect-garbage", { arguments: [file] }),
    );
    const verdicts = await Promise.all(rivals.map((rival) => rival.said(() => true)));
    winners.push(verdicts.filter((verdict) => verdict === "won").length);
    expect(verdicts.filter((verdict) => verdict === "StoreOwned")).toHaveLength(RIVALS - 1);
    await Promise.all(rivals.map((rival) => rival.kill()));
  }
  console.log(`${RIVALS} owners at once, ${ROUNDS} times: winners ${winners.join(", ")}`);
  expect(winners).toEqual(Array.from({ length: ROUNDS }, () => 1));
});

test("an owner without a reference to its store stays the owner over garbage collections", async () => {
  const file = newLogPath();
  const owner = startProgram("own-log-and-collect-garbage", { arguments: [file] });
  await owner.said((line) => line === "won");
  owner.tell("collect");
  await owner.said((line) => line === "collected");
  expect(await rivalVerdict(file)).toBe("StoreOwned");
  await owner.kill();
  // Another process can become the owner now that the first owner is dead, so nothing but that owner's process kept
  // others out.
  expect(await rivalVerdict(file)).toBe("won");
});

test("an owner stays the owner while its process opens, copies, verifies and reads the log", async () => {
  const file = newLogPath();
  await using store = await openSqliteStore({ file, owner: true });
  await store.append("a", [newEvent()]);

  expect(await refusalOf(openSqliteStore({ file, owner: true }))).toBeInstanceOf(StoreOwned);
  expect(await rivalVerdict(file)).toBe("StoreOwned");
  {
    await using beside = await openSqliteStore({ file });
    await beside.append("a", [newEvent()]);
  }
  expect(await rivalVerdict(file)).toBe("StoreOwned");
  await store.backup(join(dirname(file), "copy.sqlite"));
  await store.verify();
  await take(store.read());
  expect(await rivalVerdict(file)).toBe("StoreOwned");
});

test("an owner paused by SIGSTOP stays the owner and continues after SIGCONT", async () => {
  const file = newLogPath();
  const ledger = createLedger();
  const owner = startProgram("append-keyed", {
    arguments: [file, "0", "100"],
    onLine: (line) => ledger.take(line),
  });
  await owner.said((line) => line.startsWith("+"));
  owner.signal("SIGSTOP");
  const until = performance.now() + STOPPED_MS;
  let refused = 0;
  while (performance.now() < until) {
    expect(await rivalVerdict(file)).toBe("StoreOwned");
    refused += 1;
  }
  owner.signal("SIGCONT");
  const before = ledger.acknowledged.size;
  await owner.said((line) => line.startsWith("+") && ledger.acknowledged.size > before + 1_000);
  await owner.kill();

  const found = await examine(file, ledger);
  console.log(`stopped for ${STOPPED_MS} ms: rivals refused ${refused}, lost ${found.lost.length}`);
  expect(found).toMatchObject(FAULTLESS);
  expect([...ledger.refusals]).toEqual([]);
});

/** Starts another process that tries to own the log, and returns what it prints: `won`, or the name of the error. */
async function rivalVerdict(file: string): Promise<string> {
  const rival: Program = startProgram("own-log-and-collect-garbage", { arguments: [file] });
  const verdict = await rival.said(() => true);
  await rival.kill();
  return verdict;
}
