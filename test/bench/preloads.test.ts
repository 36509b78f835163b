// These tests call the code directly.
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/**
 * Patterns of the source files that a preload changes while they are loaded, such as `/src\/metrics\/metrics\.ts$/`. A
 * preload whose pattern fits no file would change nothing, and its benchmark would compare nothing.
 */
const REPLACED = /\/(src\\\/[^\n]+?\\\.ts\$)\//g;

const sources = [...new Glob("src/**/*.ts").scanSync(ROOT)];

test.each([...new Glob("test/{bench,faults}/*.ts").scanSync(ROOT)].sort().filter(isPreload))(
  "each file that %s replaces exists",
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
  return [...readFileSync(join(ROOT, file), "utf8").matchAll(REPLACED)].map(([, pattern = ""]) => pattern);
}
