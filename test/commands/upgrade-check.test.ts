// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openSqliteStore, type NewEvent } from "eventstore-lite";
import { createSegmentFolder } from "eventstore-lite/segments";
import { upgradeCheck } from "../../src/commands/upgrade-check.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { capture } from "../harness/capture-command.ts";
import { openCommands } from "../harness/in-process/commands.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

let folder: TemporaryFolder;
let env: Record<string, string>;

/** Creates a log with one event and closes it, so that no process has it open. */
beforeEach(async () => {
  folder = temporaryFolder();
  env = { DATABASE_URL: `sqlite:${folder.file("log.sqlite")}` };
  await using world = await openCommands(undefined, env);
  await world.append(STREAMS.outreach, [addedOf({ id: "1" }, { basis: "none" })]);
});
afterEach(() => folder[Symbol.dispose]());

/** Runs `upgrade-check --json`. Returns the exit code and the findings. */
async function check(): Promise<{ code: number; findings: Record<string, [string, string]> }> {
  const { code, out } = await capture(upgradeCheck, ["--json"], { env });
  const lines = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { what: string; state: string; detail: string });
  return {
    code,
    findings: Object.fromEntries(
      lines.map(({ what, state, detail }) => [state === "warning" ? state : what, [state, detail]]),
    ),
  };
}

const bytes = (): Record<string, string> =>
  Object.fromEntries(readdirSync(folder.path).map((name) => [name, readFileSync(join(folder.path, name), "hex")]));

function setFormat(name: string, format: number): void {
  const database = new DatabaseSync(folder.file(name));
  database.exec(`PRAGMA user_version = ${format}`);
  database.close();
}

async function appendPast(event: Omit<NewEvent, "id">): Promise<void> {
  await using store = await openSqliteStore({ file: folder.file("log.sqlite") });
  await store.append("link-go.example/x", [{ ...event, id: randomUUID() }]);
}

test("a log of this version passes, and no byte of it is changed", async () => {
  const before = bytes();
  expect(await check()).toEqual({
    code: 0,
    findings: {
      settings: ["ok", expect.any(String)],
      warning: ["warning", expect.any(String)],
      log: ["ok", "format 5, the current one"],
      events: ["ok", "this version can read the newest event of each of 1 types"],
      vault: ["ok", expect.stringContaining("has the format of this version")],
      keys: ["ok", expect.stringContaining("has the format of this version")],
    },
  });
  expect(bytes()).toEqual(before);
});

test("an event in an archived segment is checked too", async () => {
  await appendPast({ type: "LinkUnfurled", data: {}, meta: { schema: 1 } });
  await appendPast({ type: "LinkClicked", data: {}, meta: { schema: 1 } });
  {
    await using store = await openSqliteStore({
      file: folder.file("log.sqlite"),
      segments: createSegmentFolder(folder.file("log.segments")),
    });
    await Array.fromAsync(store.archive({ to: 2 }));
  }
  const { code, findings } = await check();
  expect([code, findings["events"]]).toEqual([1, ["wrong", expect.stringContaining("LinkUnfurled at 2")]]);
});

describe("reports, without a change, what this version cannot serve:", () => {
  test.each([
    [
      "a newer log",
      () => setFormat("log.sqlite", 99),
      "log",
      "it has format 99, and this version knows formats up to 5",
    ],
    ["a newer vault", () => setFormat("log.vault.sqlite", 99), "vault", "of another version of reachlog"],
    ["newer keys", () => setFormat("log.keys.sqlite", 99), "keys", "of another version of reachlog"],
    [
      "an unknown event",
      () => appendPast({ type: "LinkUnfurled", data: {}, meta: { schema: 1 } }),
      "events",
      "LinkUnfurled at 2",
    ],
    [
      "a newer event",
      () => appendPast({ type: "LinkClicked", data: {}, meta: { schema: 99 } }),
      "events",
      "LinkClicked at 2",
    ],
  ] as const)("%s", async (_, make, what, sentence) => {
    await make();
    const before = bytes();
    const { code, findings } = await check();
    expect([code, findings[what]]).toEqual([1, ["wrong", expect.stringContaining(sentence)]]);
    expect(bytes()).toEqual(before);
  });

  test("an invalid setting", async () => {
    env["DAILY_LIMIT"] = "1000";
    const { code, findings } = await check();
    expect([code, findings["settings"]]).toEqual([1, ["wrong", expect.stringContaining("DAILY_LIMIT")]]);
  });
});

test("an older log passes: the conversion at the first start is announced, not done", async () => {
  setFormat("log.sqlite", 2);
  const before = bytes();
  const { code, findings } = await check();
  expect([code, findings["log"]]).toEqual([
    0,
    ["ok", expect.stringMatching(/^format 2: the first start converts it to 5, .* back up first$/)],
  ]);
  expect(bytes()).toEqual(before);
});

test("the check works while a service has the log open", async () => {
  await using _world = await openCommands(undefined, env);
  const { code, findings } = await check();
  expect([code, findings["log"]]).toEqual([0, ["ok", "format 5, the current one"]]);
});

test("a log on PostgreSQL is reported as not examined, without a connection", async () => {
  env = { DATABASE_URL: "postgres://ann:hunter2@127.0.0.1:1/reach", REACHLOG_KEY: "A".repeat(43) };
  const { code, findings } = await check();
  expect([code, findings["log"]]).toEqual([0, ["ok", expect.stringContaining("not examined")]]);
});

test("a missing log is reported, and not created", async () => {
  env["DATABASE_URL"] = `sqlite:${folder.file("none/log.sqlite")}`;
  const { code, findings } = await check();
  expect([code, findings["log"]]).toEqual([0, ["missing", expect.stringContaining("is missing")]]);
  expect(readdirSync(folder.path)).not.toContain("none");
});
