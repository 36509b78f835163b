import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { newDatabase } from "../src/testing/postgres-server.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

/** Returns the output of the first example below a heading. */
async function outputOf(heading: string, environment: Record<string, string> = {}): Promise<string> {
  const directory = dirname(newLogPath());
  const readme = readFileSync(join(import.meta.dir, "../README.md"), "utf8");
  const [, example = ""] = readme.slice(readme.indexOf(heading)).match(/```ts\n(.*?)```/s) ?? [];
  writeFileSync(join(directory, "example.ts"), example);
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(join(import.meta.dir, ".."), join(directory, "node_modules", "eventstore-lite"));

  const child = Bun.spawn([process.execPath, "example.ts"], {
    cwd: directory,
    env: { ...process.env, ...environment },
    stdout: "pipe",
    stderr: "inherit",
  });
  const output = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  return output;
}

test("the README's example runs as it stands", async () => {
  expect(await outputOf("# eventstore-lite")).toBe("1 ItemAdded true\ntrue\n");
});

test("the README's example on PostgreSQL runs as it stands", async () => {
  expect(await outputOf("## On PostgreSQL", { DATABASE_URL: await newDatabase() })).toBe("1 ItemAdded\n");
});
