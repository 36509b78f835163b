// On no harness.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createReach, TESTED_AT, testsOf } from "./tests-of.ts";

const ROOT = join(import.meta.dirname, "../..");
const all = testsOf(ROOT);

test("each file of src names its tests, and they are there", () => {
  expect(all.filter(({ tests }) => tests.length === 0).map(({ file }) => file)).toEqual([]);
  expect(all.flatMap(({ tests }) => tests).filter((one) => !existsSync(join(ROOT, one)))).toEqual([]);
});

test("a test at a declared place runs the file", () => {
  const reaches = createReach(ROOT);
  const missed = all.flatMap(({ file, tests, entry }) =>
    entry === undefined ? [] : tests.filter((one) => !reaches(one, file)).map((one) => `${file}: ${one}`),
  );
  expect(missed).toEqual([]);
});

test("each declared place is a file's that has no other", () => {
  const used = new Set(all.map(({ entry }) => entry));
  expect(Object.keys(TESTED_AT).filter((entry) => !used.has(entry))).toEqual([]);
});
