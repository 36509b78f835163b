import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROGRAM = join(import.meta.dirname, "programs/whole-life.ts");

/** Deno is tried where it is installed. */
const RUNTIMES: readonly (readonly [string, string | null, readonly string[]])[] = [
  ["bun", process.execPath, []],
  ["deno", Bun.which("deno"), ["run", "-A"]],
];

const directory = mkdtempSync(join(tmpdir(), "eventstore-lite-runtimes-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

for (const [name, runtime, args] of RUNTIMES) {
  test.skipIf(runtime === null)(
    `on ${name} a log is written, read, verified and closed, and its threads end`,
    async () => {
      const file = join(directory, `${name}.sqlite`);
      const child = Bun.spawn([runtime ?? "", ...args, PROGRAM, file], { stdio: ["ignore", "pipe", "inherit"] });
      expect((await new Response(child.stdout).text()).split("\n")).toEqual([
        'read 1 {"n":1}',
        "verified true",
        "closed",
        "writer: ended with 0",
        "verify: ended with 0",
        "",
      ]);
      expect(await child.exited).toBe(0);
    },
  );
}
