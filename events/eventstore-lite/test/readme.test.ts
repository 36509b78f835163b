import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

test("the README's example runs as it stands", async () => {
  const directory = dirname(newLogPath());
  const readme = readFileSync(join(import.meta.dir, "../README.md"), "utf8");
  const [, example = ""] = readme.match(/```ts\n(.*?)```/s) ?? [];
  writeFileSync(join(directory, "example.ts"), example);
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(join(import.meta.dir, ".."), join(directory, "node_modules", "eventstore-lite"));

  const child = Bun.spawn([process.execPath, "example.ts"], { cwd: directory, stdout: "pipe", stderr: "inherit" });
  expect(await new Response(child.stdout).text()).toBe("1 ItemAdded true\ntrue\n");
  expect(await child.exited).toBe(0);
});
