import { beforeAll, describe, expect, test } from "bun:test";
import { openSqliteStore, StoreClosed, type EventStore } from "eventstore-lite";
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { newEvent, newEvents, refusalOf } from "../src/testing/contract/make-events-and-collect-results.ts";
import { RANGE_EVENTS } from "../src/sqlite/verify/worker-pool.ts";
import { rebuildChain, misindex, tamper } from "./tampering.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

/** Number of events in the large log: enough for more than two threads, and so many that the last part is short. */
const EVENTS = 3 * RANGE_EVENTS + 10;
const APPEND_EVENTS = 10_000;
/**
 * Number of streams in the large log. It divides neither the number of events nor that of a range, so that streams
 * cross the borders of the ranges in all ways.
 */
const STREAMS = 7;

/** Page size of the database that the schema sets for a new log. */
const PAGE_BYTES = 8_192;

const template = newLogPath();

beforeAll(async () => {
  await using store = await openSqliteStore({ file: template });
  const appends: Promise<unknown>[] = [];
  for (let made = 0; made < EVENTS; made += APPEND_EVENTS) {
    const count = Math.min(APPEND_EVENTS, EVENTS - made);
    for (let stream = 0; stream < STREAMS; stream += 1) {
      const share = Math.floor((count + stream) / STREAMS);
      const events = Array.from({ length: share }, (_, index) => newEvent("T", made + index));
      appends.push(store.append(`s${stream}`, events));
    }
    await Promise.all(appends);
  }
});

/** Opens a copy of the large log after `change` was made to it. */
async function openAfter(change: (file: string) => void): Promise<EventStore> {
  const file = newLogPath();
  copyFileSync(template, file);
  change(file);
  return openSqliteStore({ file });
}

test("altered bytes are found even if they read as the same text", async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file });
    await store.append("s", [{ ...newEvent("T", 1), data: "\ufffd" }]);
  }
  // The byte FF is not UTF-8. Read as text, it gives U+FFFD, which the event held before.
  tamper(file, `UPDATE events SET data = CAST(x'22ff22' AS TEXT)`);
  await using store = await openSqliteStore({ file });
  expect((await Array.fromAsync(store.readStored())).map(({ data }) => data)).toEqual(["\ufffd"]);
  expect(await store.verify()).toMatchObject({ ok: false, checked: 0, fault: { position: 1 } });
});

test("an event after an overlong hash cannot be verified", async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file });
    await store.append("s", [newEvent("T", 1), newEvent("T", 2)]);
  }
  tamper(file, "PRAGMA ignore_check_constraints = 1; UPDATE events SET hash = zeroblob(1000) WHERE position = 1");
  await using store = await openSqliteStore({ file });
  expect(await store.verify({ from: 2 })).toMatchObject({ ok: false, checked: 0, fault: { position: 2 } });
  expect(await store.verify()).toMatchObject({ ok: false, checked: 0, fault: { position: 1 } });
});

describe("the check of a log in several threads", () => {
  test("finds it intact and reports progress that only grows", async () => {
    await using store = await openAfter(() => {});
    const progress: number[] = [];
    const verification = await store.verify({ onProgress: (checked) => progress.push(checked) });
    expect(verification).toEqual({ ok: true, checked: EVENTS, head: await store.head() });
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
    expect(progress.at(-1)).toBe(EVENTS);
    // Progress is reported not only at the end of each range.
    expect(progress.length).toBeGreaterThan(EVENTS / RANGE_EVENTS + 1);
  });

  const first = RANGE_EVENTS + 1;
  const places = {
    "the last event of a range": RANGE_EVENTS,
    "the first event of the next range": first,
    "the last event of the log": EVENTS,
  };
  for (const [place, position] of Object.entries(places)) {
    test(`names ${place} if it was altered`, async () => {
      await using store = await openAfter((file) =>
        tamper(file, `UPDATE events SET data = '0' WHERE position = ${position}`),
      );
      const fault = { position, reason: expect.stringContaining("hash") };
      expect(await store.verify()).toMatchObject({ ok: false, checked: position - 1, fault });
    });

    test(`names ${place} if its stored hash is wrong`, async () => {
      await using store = await openAfter((file) =>
        tamper(file, `UPDATE events SET hash = zeroblob(32) WHERE position = ${position}`),
      );
      expect(await store.verify()).toMatchObject({ ok: false, fault: { position } });
    });

    test(`names ${place} if a version is skipped there in a recomputed chain`, async () => {
      await using store = await openAfter((file) => {
        tamper(file, `UPDATE events SET version = 1000000 WHERE position = ${position}`);
        rebuildChain(file);
      });
      const fault = { position, reason: expect.stringContaining("version") };
      expect(await store.verify()).toMatchObject({ ok: false, checked: position - 1, fault });
    });
  }

  test("names an unreadable event at the end of a range, not the event after it", async () => {
    await using store = await openAfter((file) =>
      tamper(file, `UPDATE events SET time = 9223372036854775807 WHERE position = ${RANGE_EVENTS}`),
    );
    const fault = { position: RANGE_EVENTS, reason: expect.stringContaining("cannot be read") };
    expect(await store.verify()).toMatchObject({ ok: false, checked: RANGE_EVENTS - 1, fault });
    expect(await store.verify({ from: first })).toMatchObject({ ok: false, checked: 0, fault: { position: first } });
  });

  test("names the first of several faults", async () => {
    await using store = await openAfter((file) =>
      // Three faults, each in another range. Two are at the start of their ranges, so they are found before the one
      // with the lowest position, which is at the end of its range. `verify` must still name that one.
      tamper(
        file,
        `UPDATE events SET data = '0' WHERE position IN (${2 * RANGE_EVENTS - 1}, ${2 * RANGE_EVENTS + 1}, ${3 * RANGE_EVENTS + 1})`,
      ),
    );
    const position = 2 * RANGE_EVENTS - 1;
    expect(await store.verify()).toMatchObject({ ok: false, checked: position - 1, fault: { position } });
    expect(await store.verify({ from: 2, to: position - 1 })).toMatchObject({ ok: true, checked: position - 2 });
  });

  test("ends at the head from its start while appends continue", async () => {
    await using store = await openAfter(() => {});
    const verifying = store.verify();
    await store.append("s0", [newEvent()]);
    expect(await verifying).toMatchObject({ ok: true, checked: EVENTS, head: { position: EVENTS } });
    expect((await store.head()).position).toBe(EVENTS + 1);
  });

  test("ends when the store is closed and leaves nothing open", async () => {
    const file = newLogPath();
    copyFileSync(template, file);
    const store = await openSqliteStore({ file });
    await store.append("s0", [newEvent()]);
    const verifying = refusalOf(store.verify());
    await store[Symbol.asyncDispose]();
    expect(await verifying).toBeInstanceOf(StoreClosed);
    expect(existsSync(`${file}-wal`)).toBe(false);
  });
});

describe("an unreadable event is named", () => {
  test("if its time is out of range", async () => {
    const file = newLogPath();
    await using store = await openSqliteStore({ file });
    await store.append(
      "a",
      Array.from({ length: 300 }, () => newEvent()),
    );
    tamper(file, "UPDATE events SET time = 9223372036854775807 WHERE position = 200");
    const fault = { position: 200, reason: expect.stringContaining("cannot be read") };
    expect(await store.verify()).toMatchObject({ ok: false, checked: 199, fault });
  });

  test("if its page of the file was overwritten", async () => {
    const file = newLogPath();
    {
      await using store = await openSqliteStore({ file });
      await store.append(
        "a",
        Array.from({ length: 500 }, (_, index) => newEvent("T", `event ${index + 1}`)),
      );
    }
    const bytes = readFileSync(file);
    const page = Math.floor(bytes.indexOf('"event 250"') / PAGE_BYTES);
    writeFileSync(file, bytes.fill(0xff, page * PAGE_BYTES, (page + 1) * PAGE_BYTES));

    await using store = await openSqliteStore({ file });
    const { ok, fault } = await store.verify();
    expect(ok).toBe(false);
    expect(fault!.reason).toContain("cannot be read");
    // The overwritten page holds some events before number 250. The fault is the first of them; all events before it
    // are good.
    expect(fault!.position).toBeWithin(150, 251);
    expect(await store.verify({ to: fault!.position - 1 })).toMatchObject({ ok: true, checked: fault!.position - 1 });
  });
});

test("a log without events is intact", async () => {
  await using store = await openSqliteStore({ file: newLogPath() });
  expect(await store.verify()).toEqual({ ok: true, checked: 0, head: await store.head() });
});

test("a damaged index is found even if no event was altered", async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file });
    await store.append("a stream of this name", newEvents(3));
    await store.append("another", newEvents(3));
  }
  const whole = readFileSync(file);
  const name = "a stream of this name";
  const places = [whole.indexOf(name), whole.lastIndexOf(name)];
  expect(places[0]).not.toBe(places[1]);
  for (const place of places) {
    const bytes = Buffer.from(whole);
    // Changes the second letter of the entry, so that the order of the index stays the same.
    bytes[place + 2]! ^= 1;
    writeFileSync(file, bytes);
    await using store = await openSqliteStore({ file });
    const { ok, fault } = await store.verify();
    expect([ok, fault?.position]).toEqual([false, 1]);
  }
});

test.each([
  ["events_by_type", "type", "the event is not found by its type"],
  ["sqlite_autoindex_events_1", "version", "the event is not found by its stream and version"],
] as const)("an event with an entry in %s under another %s is named", async (index, column, reason) => {
  await using store = await openAfter((file) => misindex(file, index, column, EVENTS - 20));
  const { ok, fault } = await store.verify();
  expect([ok, fault]).toEqual([false, { position: EVENTS - 20, reason }]);
  // The rest of the log, without the last event, verifies as whole.
  expect((await store.verify({ to: EVENTS - 1 })).ok).toBe(true);
});

test("a damaged index does not hide an altered event", async () => {
  await using store = await openAfter((file) => {
    tamper(file, `UPDATE events SET data = '0' WHERE position = ${EVENTS - 20}`);
    const bytes = readFileSync(file);
    // An index entry (https://sqlite.org/fileformat.html#record_format): a text of two characters, and row 1.
    const entry = bytes.indexOf(Buffer.from([3, 17, 9, ...Buffer.from("s0")]));
    expect(entry).toBeGreaterThan(0);
    bytes[entry + 4]! ^= 8;
    writeFileSync(file, bytes);
  });
  expect((await store.verify()).fault?.position).toBe(EVENTS - 20);
});
