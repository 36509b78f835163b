// These tests call the code directly.
import { afterAll, describe, expect, test } from "bun:test";
import { openSqliteStore, type NewEvent } from "eventstore-lite";
import fc from "fast-check";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportLog } from "../../src/commands/audit/export-log.ts";
import { importLog } from "../../src/commands/audit/import-log.ts";
import { capture } from "../harness/capture-command.ts";
import { name, newEvent } from "./event-arbitraries.ts";
import { countCases } from "../harness/case-count.ts";

/**
 * Number of random histories. It is small, because each history creates two logs; export-formats.test.ts tests single
 * lines in a thousand runs.
 */
const RUNS = countCases(25);

const root = mkdtempSync(join(tmpdir(), "reachlog-audit-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Place {
  readonly directory: string;
  readonly log: string;
  file(name: string): string;
  /** Runs `audit export` or `audit import` on the log of this place; returns its output. */
  run(action: "export" | "import", ...args: string[]): Promise<string>;
  /** Like `run`, but `signal` may interrupt the command. Returns its exit code and stderr. */
  interrupted(signal: AbortSignal, action: "export" | "import", ...args: string[]): Promise<[number, string]>;
}

function newPlace(): Place {
  const directory = mkdtempSync(join(root, "place-"));
  const log = join(directory, "log.sqlite");
  const env = { DATABASE_URL: `sqlite:${log}`, API_TOKENS: "tester:round-trip-token-0123456789" };
  const act = (signal: AbortSignal, action: "export" | "import", args: readonly string[]) =>
    capture(action === "export" ? exportLog : importLog, args, { env, signal });
  return {
    directory,
    log,
    file: (name) => join(directory, name),
    run: async (action, ...args) => (await act(new AbortController().signal, action, args)).out,
    async interrupted(signal, action, ...args) {
      const { code, err } = await act(signal, action, args);
      return [code, err];
    },
  };
}

interface Append {
  readonly stream: string;
  readonly events: readonly NewEvent[];
}

const appends: fc.Arbitrary<readonly Append[]> = fc.array(
  fc.record({ stream: fc.oneof(fc.constant("a"), name), events: fc.array(newEvent, { minLength: 1, maxLength: 4 }) }),
  { minLength: 1, maxLength: 8 },
);

/** Writes the appends of `history` to a new log, a second apart by its clock. Returns the log's head. */
async function write(log: string, history: readonly Append[]) {
  let now = 0;
  await using store = await openSqliteStore({ file: log, clock: () => (now += 1_000) });
  for (const { stream, events } of history) await store.append(stream, events);
  return await store.head();
}

test("an imported export gives the same log and exports to the same bytes", async () => {
  const roundTrip = fc.asyncProperty(appends, async (history) => {
    const source = newPlace();
    const head = await write(source.log, history);
    const target = newPlace();
    const first = source.file("export");
    const second = target.file("export");
    await source.run("export", "--out", first);
    const told = JSON.parse(await target.run("import", first, "--json")) as unknown;
    expect(told).toEqual({ position: head.position, hash: head.hash });
    await target.run("export", "--out", second);
    expect(readFileSync(second).equals(readFileSync(first))).toBe(true);
    await using store = await openSqliteStore({ file: target.log });
    expect(await store.verify()).toEqual({ ok: true, checked: head.position, head });
  });
  await fc.assert(roundTrip, { numRuns: RUNS });
});

/** Writes a log with four events and exports it. Returns its place, and the path and text of the export. */
async function exported(): Promise<{ place: Place; file: string; text: string }> {
  const place = newPlace();
  const events = [1, 2].map((n) => ({ id: `e${n}`, type: "T", data: { n, text: "é" }, meta: { schema: 1 } }));
  await write(place.log, [
    { stream: "a", events },
    { stream: "b", events },
  ]);
  const file = place.file("export");
  await place.run("export", "--out", file);
  return { place, file, text: readFileSync(file, "utf8") };
}

/** Damages to an export, each with the line and the reason that the import reports. */
const spoiled: Record<
  string,
  readonly [spoil: (lines: string[]) => string | Uint8Array, line: number, reason: string]
> = {
  "cut off within a line": [(lines) => lines.join("\n").slice(0, -9), 4, "cut off"],
  "with swapped lines": [
    ([a, b, c, d]) => [a, c, b, d].join("\n"),
    2,
    "position 2: it is missing: the event here is of position 3",
  ],
  "with a repeated line": [
    ([a, b, c, d]) => [a, b, b, c, d].join("\n"),
    3,
    "position 3: the event here is of position 2",
  ],
  "with a missing line": [([a, _b, c, d]) => [a, c, d].join("\n"), 2, "position 2: it is missing"],
  "with a missing beginning": [([_a, b, c, d]) => [b, c, d].join("\n"), 1, "position 1: it is missing"],
  "with an altered event": [(lines) => lines.join("\n").replace("é", "e"), 1, "position 1: the hash does not follow"],
  "with a line that is not JSON": [([a, _b, c, d]) => [a, "what?", c, d].join("\n"), 2, "not JSON"],
  "with a line that is no object": [([a, _b, c, d]) => [a, "[]", c, d].join("\n"), 2, "not a JSON object"],
  "in another encoding": [(lines) => Buffer.from(lines.join("\n"), "latin1"), 1, "not valid UTF-8"],
  "with an endless line": [(lines) => lines.join("\n") + "x".repeat(2_000_000), 4, "longer than 1048576 bytes"],
};

/** Imports a file that holds this content into a new place. Returns the place, and the output or the refusal. */
async function importOf(content: string | Uint8Array): Promise<{ target: Place; told: string }> {
  const target = newPlace();
  const file = target.file("given");
  writeFileSync(file, content);
  return { target, told: await target.run("import", file).catch((fault: Error) => fault.message) };
}

describe("an import", () => {
  test.each(Object.entries(spoiled))(
    "refuses a file %s, names the line and imports nothing",
    async (_what, [spoil, line, reason]) => {
      const { text } = await exported();
      const { target, told } = await importOf(spoil(text.trimEnd().split("\n")));
      expect(told).toMatch(new RegExp(`^line ${line}: .*${reason}.*; nothing was imported$`));
      expect(readdirSync(target.directory).sort()).toEqual(["given", "log.sqlite.lock"]);
    },
  );

  test.each(["csv", "cloudevents"])("refuses a %s export at its first line", async (format) => {
    const { place } = await exported();
    const file = place.file(format);
    await place.run("export", "--format", format, "--out", file);
    const { target, told } = await importOf(readFileSync(file));
    expect(told).toMatch(/^line 1: .*; nothing was imported$/);
    expect(existsSync(target.log)).toBe(false);
  });

  test("accepts a byte order mark, either line break, empty lines and a missing last break", async () => {
    const { text } = await exported();
    for (const lineBreak of ["\n", "\r\n", "\n\n"]) {
      const { told } = await importOf(`\ufeff${text.trimEnd().replaceAll("\n", lineBreak)}`);
      expect(told).toStartWith("4 events imported; head 4 ");
    }
  });

  test("refuses a file without events", async () => {
    for (const content of ["", "\n"]) {
      const { target, told } = await importOf(content);
      expect(told).toContain("holds no events");
      expect(existsSync(target.log)).toBe(false);
    }
  });
});

describe("an export to a file", () => {
  test("is readable by its owner only and overwrites no file", async () => {
    const { place, file, text } = await exported();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await place.run("export", "--out", file).catch((fault: Error) => fault.message)).toBe(
      `${file} exists already: nothing is overwritten`,
    );
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  test("leaves no file if it is interrupted", async () => {
    const { place } = await exported();
    const file = place.file("interrupted");
    const interrupt = new AbortController();
    interrupt.abort(130);
    expect(await place.interrupted(interrupt.signal, "export", "--out", file)).toEqual([
      130,
      `interrupted: ${file} was not written\n`,
    ]);
    expect(readdirSync(place.directory).filter((name) => name.startsWith("interrupted"))).toEqual([]);
  });

  test("contains events of types that this version does not know", async () => {
    const { text } = await exported();
    expect(JSON.parse(text.split("\n")[0] ?? "")).toMatchObject({ type: "T", data: { n: 1, text: "é" } });
  });
});
