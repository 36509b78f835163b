import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newDatabase } from "../src/testing/postgres-server.ts";

const PROGRAMS = join(import.meta.dirname, "programs");

/** Runtimes to test the package on; Deno is left out if it is not installed. */
const RUNTIMES: readonly (readonly [string, string | null, readonly string[]])[] = [
  ["bun", process.execPath, []],
  ["deno", Bun.which("deno"), ["run", "-A"]],
];

const directory = mkdtempSync(join(tmpdir(), "eventstore-lite-runtimes-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

for (const [name, runtime, args] of RUNTIMES) {
  const lines = async (program: string, ...places: readonly string[]): Promise<readonly string[]> => {
    const command = [runtime ?? "", ...args, join(PROGRAMS, program), ...places];
    const child = Bun.spawn(command, { stdio: ["ignore", "pipe", "inherit"] });
    const printed = await new Response(child.stdout).text();
    expect(await child.exited).toBe(0);
    return printed.trimEnd().split("\n");
  };

  test.skipIf(runtime === null)(
    `on ${name} a log is written, read, verified and closed, and its threads end`,
    async () => {
      expect(await lines("whole-life.ts", join(directory, `${name}.sqlite`))).toEqual([
        'read 1 {"n":1}',
        "archived 1 to 8",
        'read 1 {"n":1}',
        "verified true",
        "closed",
        "writer: ended with 0",
        "verify: ended with 0",
      ]);
    },
  );

  test.skipIf(runtime === null)(
    `on ${name} a log on PostgreSQL is written, read, verified, copied and closed`,
    async () => {
      const copy = join(directory, `${name}-copy.sqlite`);
      expect(await lines("whole-life-postgres.ts", await newDatabase(), copy)).toEqual([
        'read 1 {"n":1}',
        "verified true",
        "copied 1",
        "closed",
      ]);
    },
  );

  test.skipIf(runtime === null)(`on ${name} a log that cannot be opened is refused with its reason`, async () => {
    const file = join(directory, `${name}-refused.sqlite`);
    expect(await lines("open-unusable-logs.ts", file)).toEqual([
      expect.stringMatching(/^owned: StoreOwned, .*pid \d+ since /),
      `a text: StoreUnusable, ${file}.txt: the file is not an SQLite database`,
    ]);
  });
}
