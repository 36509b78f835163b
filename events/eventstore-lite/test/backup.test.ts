import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { BackupFailed } from "eventstore-lite/testing";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { newEvent, newEvents, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

test("a backup under load is an intact copy of the log at one moment", async () => {
  const file = newLogPath();
  const copy = join(dirname(file), "copy.sqlite");
  await using store = await openSqliteStore({ file });
  await store.append("a", newEvents(2_000));
  const done = new AbortController();
  const load = (async () => {
    while (!done.signal.aborted) await store.append("b", [newEvent()]);
  })();
  const checked: number[] = [];
  const { head, bytes } = await store.backup(copy, { onProgress: (events) => checked.push(events) });
  done.abort();
  await load;
  expect(bytes).toBe(statSync(copy).size);
  expect(checked.at(-1)).toBe(head.position);

  await using restored = await openSqliteStore({ file: copy });
  const { position } = head;
  expect(await restored.head()).toEqual(head);
  expect(restored.id).toBe(store.id);
  expect(await restored.verify()).toMatchObject({ ok: true, checked: position });
  expect(await take(restored.read())).toStrictEqual(await take(store.read({ to: position })));
  expect(await restored.append("a", [newEvent()], { expected: 2_000 })).toMatchObject({ first: position + 1 });
  expect(statSync(copy).mode & 0o777).toBe(0o600);
});

test("a backup overwrites no file and leaves no partial one", async () => {
  const file = newLogPath();
  await using store = await openSqliteStore({ file });
  const taken = join(dirname(file), "taken");
  writeFileSync(taken, "mine");
  expect(await refusalOf(store.backup(taken))).toMatchObject({ message: expect.stringContaining("exists") });

  const meanwhile = join(dirname(file), "meanwhile");
  const backup = refusalOf(store.backup(meanwhile));
  writeFileSync(meanwhile, "mine too");
  expect(await backup).toMatchObject({ message: expect.stringContaining("exists") });
  expect(readFileSync(meanwhile, "utf8")).toBe("mine too");
  expect(readdirSync(dirname(file)).filter((name) => name.includes("partial"))).toEqual([]);
});

const damages: Record<string, string> = {
  "an altered event": "DROP TRIGGER events_are_never_updated; UPDATE events SET data = '2' WHERE position = 2",
  "an index that differs from its table":
    "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, '(type)', '(version)') WHERE name = 'events_by_type'",
};
for (const [what, sql] of Object.entries(damages)) {
  test(`a backup of a log with ${what} fails and leaves no copy`, async () => {
    const file = newLogPath();
    const copy = join(dirname(file), "copy.sqlite");
    {
      await using store = await openSqliteStore({ file });
      await store.append("a", newEvents(3));
    }
    const raw = new DatabaseSync(file, { defensive: false });
    raw.exec(sql);
    raw.close();
    await using store = await openSqliteStore({ file });
    expect(await refusalOf(store.backup(copy))).toBeInstanceOf(BackupFailed);
    expect(readdirSync(dirname(file)).filter((name) => name.startsWith("copy"))).toEqual([]);
  });
}

test("a backup killed during the copy leaves no file under its name", async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file });
    // The log is so large that the child process is killed while it copies.
    for (let batch = 0; batch < 20; batch += 1) await store.append("a", newEvents(10_000));
  }
  const directory = dirname(file);
  const program = fileURLToPath(new URL("./programs/backup.ts", import.meta.url));
  const child = Bun.spawn([process.execPath, program, file, join(directory, "copy.sqlite")], { stderr: "inherit" });
  const isHalfDone = () => readdirSync(directory).some((name) => name.endsWith(".partial") && sizeOf(name) > 0);
  const sizeOf = (name: string) => statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0;
  while (!isHalfDone() && child.exitCode === null) await new Promise((resolve) => setImmediate(resolve));
  child.kill("SIGKILL");
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
  expect(existsSync(join(directory, "copy.sqlite"))).toBe(false);
});
