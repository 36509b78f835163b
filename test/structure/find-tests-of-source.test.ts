// These tests call the code directly.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createReach, TESTED_AT, testsOf } from "./find-tests-of-source.ts";

const ROOT = join(import.meta.dirname, "../..");
const all = testsOf(ROOT);

test("each file of src has tests, and they exist", () => {
  expect(all.filter(({ tests }) => tests.length === 0).map(({ file }) => file)).toEqual([]);
  expect(all.flatMap(({ tests }) => tests).filter((one) => !existsSync(join(ROOT, one)))).toEqual([]);
});

test("a declared test runs the file", () => {
  const reaches = createReach(ROOT);
  const missed = all.flatMap(({ file, tests, entry }) =>
    entry === undefined ? [] : tests.filter((one) => !reaches(one, file)).map((one) => `${file}: ${one}`),
  );
  expect(missed).toEqual([]);
});

test("each declaration is used by a file without tests at its own path", () => {
  const used = new Set(all.map(({ entry }) => entry));
  expect(Object.keys(TESTED_AT).filter((entry) => !used.has(entry))).toEqual([]);
});
