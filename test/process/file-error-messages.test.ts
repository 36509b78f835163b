// These tests start the service or commands as processes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { openInstallation, until, type Installation } from "../harness/process.ts";

let world: Installation;
beforeAll(async () => {
  world = await openInstallation();
  world.file("taken.jsonl", "");
  mkdirSync(join(world.directory, "folder"));
  await world.command("recipients", "import", world.file("people.csv", "username,basis\nada_builds,opt_in\n"));
});
afterAll(() => world[Symbol.asyncDispose]());

/** Commands with a wrong argument, and the error message of each; `~` stands for the installation's folder. */
const faults: readonly (readonly [string, string])[] = [
  ["recipients import ~/nope.csv", "there is no file or folder ~/nope.csv"],
  // The message contains the resolved path, which is valid from any folder.
  ["recipients import ~/folder/../folder.csv", "there is no file or folder ~/folder.csv"],
  ["audit import ~/nope.jsonl", "there is no file or folder ~/nope.jsonl"],
  ["audit export --out ~/taken.jsonl", "~/taken.jsonl exists already: nothing is overwritten"],
  ["audit export --out ~/folder", "~/folder exists already: nothing is overwritten"],
  ["audit export --out ~/nowhere/log.jsonl", "there is no file or folder ~/nowhere"],
  ["audit head --out ~/taken.jsonl", "~/taken.jsonl exists already: nothing is overwritten"],
];

describe("a file error is one sentence with the path", () => {
  test.each(faults)("%s", async (line, sentence) => {
    const told = await world.command(...line.replaceAll("~", world.directory).split(" "));
    expect([told.code, told.err]).toEqual([1, `${sentence.replaceAll("~", world.directory)}\n`]);
  });

  test("recipients import with a folder", async () => {
    mkdirSync(join(world.directory, "people.folder.csv"));
    const path = join(world.directory, "people.folder.csv");
    const { code, err } = await world.command("recipients", "import", path);
    expect([code, err]).toEqual([1, `${path} is a folder, not a file\n`]);
  });
});

test("audit import refuses a folder", async () => {
  await using empty = await openInstallation();
  const { code, err } = await empty.command("audit", "import", empty.directory);
  expect([code, err]).toEqual([1, `${empty.directory} is a folder, not a file\n`]);
});

describe("a wrong option is reported in one sentence", () => {
  test.each([
    [["stats", "--foo"], "unknown option '--foo'"],
    [["stats", "--jsn"], "unknown option '--jsn' (Did you mean --json?)"],
    [["stats", "--as-of"], "option '--as-of <moment>' argument missing"],
    [
      ["stats", "--as-of", "--json"],
      "option '--as-of <moment>' argument '--json' is invalid. Expected a value, not an option.",
    ],
    [["stats", "--json=yes"], "unknown option '--json=yes'"],
  ])("%j", async (args, sentence) => {
    const { code, err } = await world.command(...args);
    expect([code, err]).toEqual([2, `${sentence}\nsee reachlog stats --help\n`]);
  });
});

test("a killed export leaves no incomplete file under its final name", async () => {
  const out = join(world.directory, "killed.jsonl");
  // The list is so long that the export needs several writes, and the kill comes between two of them.
  const people = Array.from({ length: 4_000 }, (_, at) => `person_${at},opt_in`).join("\n");
  await world.command("recipients", "import", world.file("many.csv", `username,basis\n${people}\n`));
  const child = world.start(["audit", "export", "--out", out]);
  const begun = () => readdirSync(world.directory).filter((name) => name.startsWith("killed.jsonl"));
  await until(
    () => Promise.resolve(begun()),
    (names) => names.length > 0,
  );
  child.kill("SIGKILL");
  await child.exited;
  // If the export was faster than the signal, its complete file exists under the final name.
  if (existsSync(out)) expect(await world.command("audit", "verify")).toMatchObject({ code: 0 });
  else expect(begun()).toEqual([expect.stringMatching(/^killed\.jsonl\..*\.partial$/)]);
});
