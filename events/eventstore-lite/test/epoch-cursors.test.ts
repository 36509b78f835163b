import { describe, expect, test } from "bun:test";
import type { Cursor } from "../src/event-store-interface.ts";
import { importSqliteLog, openSqliteStore, type EventStore } from "eventstore-lite";
import { CursorRefused } from "eventstore-lite/testing";
import { copyFileSync } from "node:fs";
import { newEvents, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

/** Returns a store with a log of five events, and the file of a backup that was made of it. */
async function backedUp(): Promise<{ store: EventStore; copy: string }> {
  const store = await openSqliteStore({ file: newLogPath(), writerThread: false });
  await store.append("a", newEvents(5));
  const copy = newLogPath();
  await store.backup(copy);
  return { store, copy };
}

/** Opens the backup as if it had been put in the log's place. */
function restore(copy: string): Promise<EventStore> {
  const file = newLogPath();
  copyFileSync(copy, file);
  return openSqliteStore({ file, owner: true, writerThread: false });
}

/**
 * Resumes a consumer at each cursor. Returns for each cursor the position at which the consumer continues, or the
 * reason why the store refused the cursor.
 */
function refusals(store: EventStore, cursors: readonly Cursor[]): Promise<unknown[]> {
  return Promise.all(cursors.map((cursor) => refusal(store, cursor)));
}

async function refusal(store: EventStore, cursor: Cursor): Promise<unknown> {
  return store.after(cursor).catch((fault: unknown) => {
    expect(fault).toBeInstanceOf(CursorRefused);
    return (fault as CursorRefused).reason;
  });
}

describe("a cursor", () => {
  test("stays valid after a restart", async () => {
    const file = newLogPath();
    const first = await openSqliteStore({ file, writerThread: false });
    await first.append("a", newEvents(5));
    const cursor = first.cursor(3);
    await first[Symbol.asyncDispose]();
    await using store = await openSqliteStore({ file, writerThread: false });
    expect([store.epoch, await store.after(cursor)]).toEqual([first.epoch, 4]);
  });

  test("into the lost part of a restored log is refused, even once the log has regrown", async () => {
    const { store, copy } = await backedUp();
    await store.append("a", newEvents(2));
    const [shared, lost] = [store.cursor(5), store.cursor(6)];
    await store[Symbol.asyncDispose]();
    await using restored = await restore(copy);
    expect([restored.id, restored.epoch === store.epoch]).toEqual([store.id, false]);
    expect(await refusals(restored, [shared, lost])).toEqual([6, "epoch-ended"]);
    await restored.append("a", newEvents(9));
    expect(await refusals(restored, [shared, lost])).toEqual([6, "epoch-ended"]);
  });

  test("from a restored log is refused by the original beyond their shared events", async () => {
    const { store, copy } = await backedUp();
    await using original = store;
    await using restored = await restore(copy);
    for (const log of [original, restored]) await log.append("a", newEvents(2));
    const positions = [0, 5, 6].map(restored.cursor);
    expect(await refusals(original, positions)).toEqual([1, 6, "unknown-epoch"]);
    expect(await refusals(restored, positions)).toEqual([1, 6, 7]);
  });

  test("from one restored copy is refused by another copy of the same file", async () => {
    const { store, copy } = await backedUp();
    await store[Symbol.asyncDispose]();
    await using first = await restore(copy);
    await using second = await restore(copy);
    for (const log of [first, second]) await log.append("a", newEvents(2));
    expect(await refusal(second, first.cursor(6))).toBe("unknown-epoch");
  });

  test("stays valid after several restores", async () => {
    const { store, copy } = await backedUp();
    await store[Symbol.asyncDispose]();
    const second = await restore(copy);
    await second.append("a", newEvents(3));
    const copyOfCopy = newLogPath();
    await second.backup(copyOfCopy);
    await second[Symbol.asyncDispose]();
    await using third = await restore(copyOfCopy);
    await third.append("a", newEvents(3));
    expect(await refusals(third, [store.cursor(5), second.cursor(8), third.cursor(11)])).toEqual([6, 9, 12]);
    expect(await refusal(third, { ...store.cursor(5), position: 6 })).toBe("epoch-ended");
    expect(await refusal(third, { ...second.cursor(8), position: 9 })).toBe("epoch-ended");
  });
});

test("a log reports how it began, even after appends", async () => {
  const { store, copy } = await backedUp();
  const events = store.readStored();
  const imported = newLogPath();
  await importSqliteLog({ file: imported, events });
  await using original = store;
  expect(original.begunAs).toBe("new");
  for (const [file, begunAs] of [
    [copy, "backup"],
    [imported, "import"],
  ] as const) {
    for (const append of [true, false]) {
      await using opened = await openSqliteStore({ file, writerThread: false });
      expect(opened.begunAs).toBe(begunAs);
      if (append) await opened.append("a", newEvents(1));
    }
  }
});

test("a consumer ahead of a restored log is refused before it misses an event", async () => {
  const { store, copy } = await backedUp();
  await store.append("a", newEvents(1));
  const consumer = store.cursor((await take(store.read())).at(-1)!.position);
  await store[Symbol.asyncDispose]();
  await using restored = await restore(copy);
  const follow = async () => {
    const from = await restored.after(consumer);
    const events = restored.subscribe({ from, signal: new AbortController().signal });
    await take(events, 1);
  };
  expect(await refusalOf(follow())).toMatchObject({
    name: "CursorRefused",
    message: expect.stringContaining("its epoch ended at 5"),
  });
});
