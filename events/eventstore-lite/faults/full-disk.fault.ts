import { expect, test } from "bun:test";
import { type EventStore, openSqliteStore } from "eventstore-lite";
import { StoreFull } from "eventstore-lite/testing";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { createExt4, createTmpfs } from "./test-disk.ts";
import { expectWhole } from "./compare-log-with-ledger.ts";
import { lacks } from "./required-tools.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * Size of the disk. The write-ahead log is checkpointed at 8 MB, so a disk of this size sometimes gets full in the
 * middle of a checkpoint.
 */
const DISK_BYTES = 28 * MIB;
const BALLASTS = 6;
const BALLAST_BYTES = 1.5 * MIB;

const CALLERS = 8;
/**
 * Maximum number of characters of a test event. Each event has a random number of them, so that small events fill the
 * last pages.
 */
const CHARS_MAX = 40 * KIB;

/** Time limit for a full store to accept an append, from the moment that the disk has room again. */
const RECOVERY_MS_MAX = 5_000;

const disks = { tmpfs: createTmpfs, ext4: createExt4 };

for (const [name, createDisk] of Object.entries(disks)) {
  test.skipIf(lacks("root", "mount"))(
    `a full ${name} refuses only appends, and the same store continues once there is room`,
    async () => {
      using disk = createDisk(DISK_BYTES);
      const ballasts = Array.from({ length: BALLASTS }, (_, number) => join(disk.path, `ballast-${number}`));
      for (const ballast of ballasts) writeFileSync(ballast, Buffer.alloc(BALLAST_BYTES, 1));
      const file = join(disk.path, "log.sqlite");
      const acknowledged: string[] = [];
      let recoveryMsMax = 0;
      {
        await using store = await openSqliteStore({ file, owner: true });
        await appendUntilFull(store, acknowledged);
        for (const ballast of ballasts) {
          // Reads succeed on the full disk, and return all acknowledged events and none that was refused.
          expect((await take(store.read())).map(({ id }) => id).sort()).toEqual(acknowledged.toSorted());
          rmSync(ballast);
          const freedAt = performance.now();
          await appendSome(store, acknowledged);
          recoveryMsMax = Math.max(recoveryMsMax, performance.now() - freedAt);
          await appendUntilFull(store, acknowledged);
        }
      }
      await expectKept(file, acknowledged);
      console.log(
        `full ${name}, ${BALLASTS + 1} times: acknowledged ${acknowledged.length}, lost 0; ` +
          `slowest recovery ${recoveryMsMax.toFixed(0)} ms`,
      );
      expect(recoveryMsMax).toBeLessThan(RECOVERY_MS_MAX);
    },
  );
}

/** Appends with several callers, until each is refused. */
async function appendUntilFull(store: EventStore, acknowledged: string[]): Promise<void> {
  const callers = Array.from({ length: CALLERS }, async () => {
    for (;;) await appendSome(store, acknowledged);
  });
  for (const { reason } of (await Promise.allSettled(callers)) as PromiseRejectedResult[]) {
    expect(reason).toBeInstanceOf(StoreFull);
  }
}

async function appendSome(store: EventStore, acknowledged: string[]): Promise<void> {
  const id = crypto.randomUUID();
  const text = "x".repeat(Math.random() * CHARS_MAX);
  await store.append("a", [{ id, type: "Filled", data: { text }, meta: {} }]);
  acknowledged.push(id);
}

/** Expects these events in the file on disk, read by SQLite itself and by a store that opens the file again. */
async function expectKept(file: string, acknowledged: readonly string[]): Promise<void> {
  const db = new DatabaseSync(file, { readOnly: true });
  expect(db.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  db.close();
  await using store = await openSqliteStore({ file, owner: true });
  const events = await take(store.read());
  await expectWhole(store, events);
  expect(events.map(({ id }) => id).sort()).toEqual(acknowledged.toSorted());
}
