import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { newEvent, newEvents, refusalOf, take } from "../src/contract/events.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

test("a backup taken under load is a whole log: the same one, as it was at one moment", async () => {
  const file = newLogPath();
  const copy = join(dirname(file), "copy.sqlite");
  await using store = await openSqliteStore({ file });
  await store.append("a", newEvents(2_000));
  const done = new AbortController();
  const load = (async () => {
    while (!done.signal.aborted) await store.append("b", [newEvent()]);
  })();
  await store.backup(copy);
  done.abort();
  await load;

  await using restored = await openSqliteStore({ file: copy });
  const { position } = await restored.head();
  expect(restored.id).toBe(store.id);
  expect(await restored.verify()).toMatchObject({ ok: true, checked: position });
  expect(await take(restored.read())).toStrictEqual(await take(store.read({ to: position })));
  expect(await restored.append("a", [newEvent()], { expected: 2_000 })).toMatchObject({ first: position + 1 });
  expect(statSync(copy).mode & 0o777).toBe(0o600);
});

test("a backup overwrites nothing and leaves nothing half done", async () => {
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
