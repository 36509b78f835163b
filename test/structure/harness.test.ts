// On no harness.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { harnessesOf, testFiles } from "./harness.ts";

const ROOT = join(import.meta.dirname, "../..");

test("each test file names its harness in the first line", () => {
  const harnesses = harnessesOf(ROOT);
  const files = testFiles(ROOT);
  expect(files.length).toBeGreaterThan(150);
  const lines = files.map((file) => `${file}: ${readFileSync(join(ROOT, file), "utf8").split("\n", 1)[0]}`);
  expect(lines).toEqual(files.map((file) => `${file}: // On ${harnesses.get(file)}.`));
});
