import { expect, test } from "bun:test";
import { openSqliteStore, StoreClosed } from "eventstore-lite";
import { AppendInDoubt } from "eventstore-lite/testing";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { newEvent, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { createExt4 } from "./test-disk.ts";
import { expectWhole } from "./compare-log-with-ledger.ts";
import { lacks, run } from "./required-tools.ts";

const DISK_BYTES = 32 * 1024 * 1024;

const isUnable = lacks("root", "mount");

test.skipIf(isUnable)("a log on a read-only file system is refused with a reason and left unchanged", async () => {
  using disk = createExt4(DISK_BYTES);
  const file = join(disk.path, "log.sqlite");
  {
    await using store = await openSqliteStore({ file, owner: true });
    await store.append("a", [newEvent()]);
  }
  const before = readFileSync(file);
  disk.unmount();
  disk.mount("ro");
  for (const owner of [true, false]) {
    const refused = await refusalOf(openSqliteStore({ file, owner }));
    expect(refused).toBeInstanceOf(Error);
    expect((refused as Error).message).toMatch(/readonly|read-only|unable to open/);
  }
  expect(readFileSync(file).equals(before)).toBe(true);
  disk.unmount();
  disk.mount();
  await using store = await openSqliteStore({ file, owner: true });
  expect(await store.verify()).toMatchObject({ ok: true, checked: 1 });
});

test.skipIf(isUnable)(
  "a file system that turns read-only ends acknowledgements and loses no acknowledged append",
  async () => {
    using disk = createExt4(DISK_BYTES);
    const file = join(disk.path, "log.sqlite");
    const store = await openSqliteStore({ file, owner: true });
    const acknowledged: string[] = [];
    const callers = Array.from({ length: 8 }, async () => {
      for (;;) {
        const event = newEvent();
        await store.append("a", [event]);
        acknowledged.push(event.id);
      }
    });
    const settled = Promise.allSettled(callers);
    await store.append("a", [newEvent()]);
    failFileSystem(disk.path);
    const refusals = (await settled).map((outcome) => (outcome as PromiseRejectedResult).reason as unknown);
    expect(refusals.every((refusal) => refusal instanceof AppendInDoubt || refusal instanceof StoreClosed)).toBe(true);
    expect(await store.failed).toBeInstanceOf(AppendInDoubt);
    expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(StoreClosed);
    expect((await take(store.read())).length).toBeGreaterThanOrEqual(acknowledged.length);
    await store[Symbol.asyncDispose]();

    disk.unmount();
    disk.mount();
    await using reopened = await openSqliteStore({ file, owner: true });
    const events = await take(reopened.read());
    await expectWhole(reopened, events);
    const kept = new Set(events.map(({ id }) => id));
    const lost = acknowledged.filter((id) => !kept.has(id));
    console.log(`read-only under load: acknowledged ${acknowledged.length}, lost ${lost.length}`);
    expect(lost).toEqual([]);
  },
);

/**
 * Makes a mounted ext4 file system read-only as the kernel does when it finds damage. A plain remount is refused while
 * a file is open.
 */
function failFileSystem(path: string): void {
  const device = basename(run("findmnt", "-n", "-o", "SOURCE", path).trim());
  run("mount", "-o", "remount,errors=remount-ro", path);
  writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, "1");
}
