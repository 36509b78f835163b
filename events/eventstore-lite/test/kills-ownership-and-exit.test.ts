import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { StoreOwned } from "eventstore-lite/testing";
import { fileURLToPath } from "node:url";
import { refusalOf } from "../src/testing/contract/make-events-and-collect-results.ts";
import { takeOwnership } from "../src/sqlite/ownership.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

const APPEND_UNTIL_KILLED = new URL("./programs/append-until-killed.ts", import.meta.url);
const OPEN_AND_CLOSE = new URL("./programs/open-and-close.ts", import.meta.url);

const KILLS = 5;
const ACKNOWLEDGED_BEFORE_KILL = 200;

test("every acknowledged append survives kill -9, and the log is intact", async () => {
  const file = newLogPath();
  let acknowledged = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const child = run(APPEND_UNTIL_KILLED, file);
    acknowledged = await lastLineAfter(child, ACKNOWLEDGED_BEFORE_KILL, () => child.kill("SIGKILL"));
    await using store = await openSqliteStore({ file, owner: true });
    const { position } = await store.head();
    expect(position).toBeGreaterThanOrEqual(acknowledged);
    expect(await store.verify()).toMatchObject({ ok: true, checked: position });
  }
  expect(acknowledged).toBeGreaterThanOrEqual(KILLS * ACKNOWLEDGED_BEFORE_KILL);
});

test("a log has one owner, named in refusals, and its death frees the log", async () => {
  const file = newLogPath();
  const child = run(APPEND_UNTIL_KILLED, file, "serve on port 3000");
  await lastLineAfter(child, 1, async () => {
    const refused = await refusalOf(openSqliteStore({ file, owner: true }));
    expect(refused).toBeInstanceOf(StoreOwned);
    expect((refused as StoreOwned).holder).toStartWith(`serve on port 3000 (pid ${child.pid} since 20`);
    // A process that does not want to own the log may use it at the same time as its owner.
    await using command = await openSqliteStore({ file });
    expect((await command.head()).position).toBeGreaterThan(0);
    child.kill("SIGKILL");
  });
  await (await openSqliteStore({ file, owner: true }))[Symbol.asyncDispose]();
});

test("a second owner in the same process is refused", async () => {
  const file = newLogPath();
  await using _owner = await openSqliteStore({ file, owner: true });
  expect(await refusalOf(openSqliteStore({ file, owner: true }))).toBeInstanceOf(StoreOwned);
});

test("an unreferenced owner stays the owner over a garbage collection", () => {
  const file = newLogPath();
  takeOwnership(file, "forgotten", 0);
  // One collection is enough to close a lock without references. Each takes long in a process that has run many tests.
  Bun.gc(true);
  expect(() => takeOwnership(file, "second", 0)).toThrow("forgotten");
});

test("a process that has closed its store ends by itself", async () => {
  expect(await run(OPEN_AND_CLOSE, newLogPath()).exited).toBe(0);
});

test("the writer thread does not keep a process from ending on SIGTERM", async () => {
  const child = run(APPEND_UNTIL_KILLED, newLogPath());
  await lastLineAfter(child, 1, () => child.kill("SIGTERM"));
  expect(child.signalCode).toBe("SIGTERM");
});

function run(program: URL, ...programArguments: string[]) {
  return Bun.spawn([process.execPath, fileURLToPath(program), ...programArguments], {
    stdout: "pipe",
    stderr: "inherit",
  });
}

/** Calls `act` once the process has printed `lines` lines, and returns the largest number printed until it ended. */
async function lastLineAfter(
  child: ReturnType<typeof run>,
  lines: number,
  act: () => void | Promise<void>,
): Promise<number> {
  let printed = "";
  let acted: Promise<void> | undefined;
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    printed += chunk;
    if (!acted && printed.split("\n").length > lines) acted = Promise.resolve(act());
  }
  await acted;
  await child.exited;
  return Math.max(0, ...printed.split("\n").map(Number));
}
