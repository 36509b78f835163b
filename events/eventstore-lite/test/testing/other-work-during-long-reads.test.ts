import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { newEvents } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { countLoopIterations } from "../../src/testing/count-event-loop-iterations.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();

/** Time that the test's caller works on each event, in ms. */
const WORK_MS = 1 / 40;

function work(ms: number): void {
  const endsAt = performance.now() + ms;
  while (performance.now() < endsAt);
}

test("a short read that begins during a long one ends first", async () => {
  await using store = await openSqliteStore({ file: newLogPath() });
  await store.append("a", newEvents(4_000));
  const ended: string[] = [];
  const readLong = async (): Promise<void> => {
    for await (const batch of store.readFolded()) work(batch.length * WORK_MS);
    ended.push("long");
  };
  const readShort = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    for await (const _ of store.read({ limit: 1 }));
    ended.push("short");
  };
  await Promise.all([readLong(), readShort()]);
  expect(ended).toEqual(["short", "long"]);
});

test("other work runs during long reads, in batches or one by one", async () => {
  await using store = await openSqliteStore({ file: newLogPath() });
  await store.append("a", newEvents(1_000));
  const folded = await countLoopIterations(async () => {
    for await (const batch of store.readFolded()) work(batch.length * WORK_MS);
  });
  const read = await countLoopIterations(async () => {
    for await (const _ of store.read()) work(WORK_MS);
  });
  const readOneByOne = await countLoopIterations(async () => {
    for (let position = 1; position <= 1_000; position++) {
      for await (const _ of store.read({ from: position, to: position })) work(WORK_MS);
    }
  });
  expect(folded).toBeGreaterThan(5);
  expect(read).toBeGreaterThan(5);
  expect(readOneByOne).toBeGreaterThan(5);
});
