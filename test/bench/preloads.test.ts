// These tests call the code directly.
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sourceFiles } from "../structure/imports.ts";

const ROOT = join(import.meta.dirname, "../..");

/**
 * Finds the patterns of source files that a preload changes while they are loaded. If a pattern fitted no file, the
 * preload would change nothing, and its benchmark would compare nothing.
 */
const CHANGED = /\/(src\\\/[^\n]+?\\\.ts\$)\//g;

const sources = sourceFiles(ROOT);

test.each([...new Glob("test/{bench,faults}/*.ts").scanSync(ROOT)].sort().filter(isPreload))(
  "each file that %s changes exists",
  (file) => {
    const patterns = patternsIn(file);
    expect(patterns.filter((pattern) => !sources.some((source) => new RegExp(pattern).test(source)))).toEqual([]);
  },
);

test("the preloads are found", () => {
  const { length } = [...new Glob("test/bench/preload-*.ts").scanSync(ROOT)].filter(isPreload);
  expect(length).toBeGreaterThanOrEqual(5);
});

function isPreload(file: string): boolean {
  return !file.endsWith(".test.ts") && patternsIn(file).length > 0;
}

function patternsIn(file: string): readonly string[] {
  return [...readFileSync(join(ROOT, file), "utf8").matchAll(CHANGED)].map(([, pattern = ""]) => pattern);
}
