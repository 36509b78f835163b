// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** The files that a process loads before it knows the command. */
function loadedBy(main: string): ReadonlySet<string> {
  const loaded = new Set<string>();
  const waiting = [main];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (loaded.has(file)) continue;
    loaded.add(file);
    if (!/\.tsx?$/.test(file)) continue;
    const transpiler = new Bun.Transpiler({ loader: file.endsWith(".tsx") ? "tsx" : "ts" });
    for (const { kind, path } of transpiler.scanImports(readFileSync(join(ROOT, file), "utf8"))) {
      if (kind !== "import-statement") continue;
      waiting.push(path.startsWith(".") ? normalize(join(dirname(file), path)) : `package ${path}`);
    }
  }
  return loaded;
}

test("a command starts without the HTTP framework, which only a service needs", () => {
  const loaded = [...loadedBy("src/main.ts")];
  expect(loaded).toContain("src/commands/serve.ts");
  expect(loaded).toContain("package commander");
  expect(loaded.filter((file) => file.startsWith("src/http/") || file === "package elysia")).toEqual([]);
});
