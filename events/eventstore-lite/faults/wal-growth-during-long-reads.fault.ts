import { expect, test } from "bun:test";
import { type EventStore, openSqliteStore } from "eventstore-lite";
import { statSync } from "node:fs";
import { newEvents, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { lacks } from "./required-tools.ts";

const newLogPath = temporaryLogs();

const KIB = 1024;
const MIB = 1024 * KIB;

/** Size to which the write-ahead log is cut (src/sqlite/connection-settings.ts). */
const WAL_BYTES_KEPT = 64 * MIB;
/**
 * Maximum size of the write-ahead log while no reader blocks checkpoints. SQLite checkpoints at 8 MB, but first writes
 * the rest of the batch that exceeds this size.
 */
const WAL_BYTES_IN_PASSING = 24 * MIB;

const EVENT_CHARS = 64 * KIB;
const BATCH = 16;
const WRITTEN_BYTES = 160 * MIB;

test.skipIf(lacks("sqlite3"))(
  "the write-ahead log grows during an outside reader's transaction and is bounded after it",
  async () => {
    const file = newLogPath();
    await using store = await openSqliteStore({ file, owner: true });
    await store.append("a", newEvents(1));
    const reader = Bun.spawn(["sqlite3", file], { stdio: ["pipe", "pipe", "inherit"] });
    await reader.stdin.write("BEGIN; SELECT 'events ' || count(*) FROM events;\n");
    await reader.stdin.flush();
    const lines = reader.stdout.getReader();
    await lines.read();

    const appends = await appendMuch(store);
    const grown = walBytes(file);
    await reader.stdin.write("COMMIT; SELECT 'done';\n");
    await reader.stdin.end();
    expect(await reader.exited).toBe(0);
    // The first append makes a checkpoint. The second one writes to the head of the write-ahead log again, and
    // truncates its file.
    for (let count = 0; count < 2; count += 1) await store.append("a", newEvents(1));
    const bounded = walBytes(file);
    console.log(
      `outside reader: appends refused 0 of ${appends}, WAL ${mib(grown)} MiB while it read, ${mib(bounded)} after`,
    );
    expect(grown).toBeGreaterThan(WRITTEN_BYTES);
    expect(bounded).toBeLessThanOrEqual(WAL_BYTES_KEPT);
    expect(await store.verify()).toMatchObject({ ok: true });
  },
);

test("a paused reader and subscriber of the store do not let the write-ahead log grow", async () => {
  const file = newLogPath();
  await using store = await openSqliteStore({ file, owner: true });
  await store.append("a", newEvents(2_000));
  const { signal } = new AbortController();
  const standing = [store.read(), store.subscribe({ from: 1, signal })].map((events) => events[Symbol.asyncIterator]());
  for (const events of standing) expect(await events.next()).toMatchObject({ value: { position: 1 } });

  const appends = await appendMuch(store);
  const bytes = walBytes(file);
  console.log(
    `paused reader and subscriber: WAL ${mib(bytes)} MiB after ${appends} appends of ${mib(WRITTEN_BYTES)} MiB`,
  );
  expect(bytes).toBeLessThan(WAL_BYTES_IN_PASSING);
  for (const events of standing) {
    expect(await events.next()).toMatchObject({ value: { position: 2 } });
    await events.return?.();
  }
  // The slow read returned the events that the log held when the read began, so it ends here. A new read finds no event
  // that was added to the stream meanwhile.
  expect(await take(store.read({ stream: "a" }))).toHaveLength(2_000);
});

/** Appends {@link WRITTEN_BYTES} in all, and returns the number of appends, none of which may be refused. */
async function appendMuch(store: EventStore): Promise<number> {
  const text = "x".repeat(EVENT_CHARS);
  const appends = Math.ceil(WRITTEN_BYTES / EVENT_CHARS);
  for (let count = 0; count < appends; count += BATCH) {
    const batch = Array.from({ length: BATCH }, () =>
      store.append("b", [{ id: crypto.randomUUID(), type: "Large", data: text, meta: {} }]),
    );
    await Promise.all(batch);
  }
  return appends;
}

function walBytes(file: string): number {
  return statSync(`${file}-wal`).size;
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
