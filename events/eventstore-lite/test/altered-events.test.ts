import { describe, expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { DatabaseSync } from "node:sqlite";
import { newEvent, newEvents } from "../src/testing/contract/make-events-and-collect-results.ts";
import { rebuildChain, tamper } from "./tampering.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

describe("the append-only triggers refuse", () => {
  const attempts = [
    "UPDATE events SET data = '{}'",
    "UPDATE events SET time = time + 1 WHERE position = 1",
    "DELETE FROM events WHERE position = 2",
    "DELETE FROM events",
    "UPDATE streams SET name = 'other'",
    "UPDATE types SET name = 'other'",
    "DELETE FROM types",
  ];
  for (const sql of attempts) {
    test(sql, async () => {
      const file = newLogPath();
      await using store = await openSqliteStore({ file, writerThread: false });
      await store.append("a", newEvents(2));
      const raw = new DatabaseSync(file);
      expect(() => raw.exec(sql)).toThrow("append-only");
      raw.close();
      expect(await store.verify()).toMatchObject({ ok: true, checked: 2 });
    });
  }
});

/**
 * Changes by an attacker who can write the file and first drops the triggers, with the position and the reason that
 * `verify` must report.
 */
const tampering: Record<string, readonly [sql: string, position: number, reason: string]> = {
  "an altered payload": ["UPDATE events SET data = '{}' WHERE position = 5", 5, "the hash"],
  "an altered time": ["UPDATE events SET time = time - 1 WHERE position = 5", 5, "the hash"],
  "an altered id": ["UPDATE events SET id = 'x' WHERE position = 5", 5, "the hash"],
  "another type": [
    "UPDATE events SET type = (SELECT id FROM types WHERE name = 'Last') WHERE position = 5",
    5,
    "the hash",
  ],
  "a renamed stream": ["UPDATE streams SET name = 'c' WHERE name = 'b'", 2, "the hash"],
  "an event moved to another stream": [
    "UPDATE events SET stream = (SELECT id FROM streams WHERE name = 'b'), version = 99 WHERE position = 5",
    5,
    "the hash",
  ],
  "a removed event": ["DELETE FROM events WHERE position = 5", 5, "missing"],
  "a removed first event": ["DELETE FROM events WHERE position = 1", 1, "missing"],
  "swapped events": [
    `UPDATE events SET position = 100 WHERE position = 5; UPDATE events SET position = 5 WHERE position = 6;
     UPDATE events SET position = 6 WHERE position = 100`,
    5,
    "the hash",
  ],
  "an inserted event": [
    `UPDATE events SET position = position + 100 WHERE position > 5;
     INSERT INTO events SELECT 6, stream, 50, type, id, time, data, meta, hash FROM events WHERE position = 5;
     UPDATE events SET position = position - 99 WHERE position > 100`,
    6,
    "the hash",
  ],
  "a replaced event": [
    "REPLACE INTO events SELECT position, stream, version, type, id, time, '1', meta, hash FROM events WHERE position = 5",
    5,
    "the hash",
  ],
};

describe("verify names the position of", () => {
  for (const [what, [sql, position, reason]] of Object.entries(tampering)) {
    test(what, async () => {
      const file = newLogPath();
      await using store = await openSqliteStore({ file, writerThread: false });
      for (let count = 0; count < 4; count += 1) {
        await store.append("a", [newEvent("T", count)]);
        await store.append("b", [newEvent("T", count)]);
      }
      await store.append("a", [newEvent("Last")]);
      tamper(file, sql);
      expect(await store.verify()).toMatchObject({
        ok: false,
        checked: position - 1,
        fault: { position, reason: expect.stringContaining(reason) },
      });
    });
  }

  test("a time before the previous one, in a recomputed chain", async () => {
    await expectFaultInNewChain("UPDATE events SET time = 1 WHERE position = 4", { position: 4, reason: "time" });
  });

  test("a gap in a stream's versions, in a recomputed chain", async () => {
    await expectFaultInNewChain("UPDATE events SET version = 9 WHERE position = 5", { position: 5, reason: "version" });
  });

  test("swapped versions, in a recomputed chain", async () => {
    const swap = `UPDATE events SET version = 99 WHERE position = 4; UPDATE events SET version = 4 WHERE position = 5;
      UPDATE events SET version = 5 WHERE position = 4`;
    await expectFaultInNewChain(swap, { position: 4, reason: "version" });
  });

  test("no fault in a truncated log, which only an exported head reveals", async () => {
    const file = newLogPath();
    await using store = await openSqliteStore({ file, writerThread: false });
    await store.append("a", newEvents(9));
    const exported = await store.head();
    tamper(file, "DELETE FROM events WHERE position > 7");
    const verification = await store.verify();
    expect(verification).toMatchObject({ ok: true, checked: 7 });
    expect(verification.head.position).toBeLessThan(exported.position);
  });
});

async function expectFaultInNewChain(sql: string, { position, reason }: { position: number; reason: string }) {
  const file = newLogPath();
  await using store = await openSqliteStore({ file, writerThread: false });
  await store.append("a", newEvents(5));
  tamper(file, sql);
  rebuildChain(file);
  const fault = { position, reason: expect.stringContaining(reason) };
  expect(await store.verify()).toMatchObject({ ok: false, checked: position - 1, fault });
  // A verification that begins at this position also finds the fault.
  expect(await store.verify({ from: position })).toMatchObject({ ok: false, checked: 0, fault });
}
