// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FIRST_LINES, harnessesOf, testFiles } from "./harness-of-each-test.ts";

const ROOT = join(import.meta.dirname, "../..");

test("each test file says in its first line how its tests run", () => {
  const harnesses = harnessesOf(ROOT);
  const files = testFiles(ROOT);
  expect(files.length).toBeGreaterThan(150);
  const lines = files.map((file) => `${file}: ${readFileSync(join(ROOT, file), "utf8").split("\n", 1)[0]}`);
  expect(lines).toEqual(files.map((file) => `${file}: ${FIRST_LINES[harnesses.get(file) ?? ""]}`));
});
