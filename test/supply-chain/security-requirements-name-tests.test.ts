// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const DOCUMENT = readFileSync(join(ROOT, "docs/security-requirements.md"), "utf8");

/** Items of the document about requirements that are met. */
const rows = DOCUMENT.slice(0, DOCUMENT.indexOf("Not met, or left"))
  .split("\n")
  .filter((line) => /^- (?:API)?\d/.test(line));

/** The links of a row to files of tests. */
const testsIn = (row: string): readonly string[] =>
  [...row.matchAll(/\]\(\.\.\/((?:test|events)\/[\w./-]+\.ts)\)/g)].map(([, file = ""]) => file);

describe("docs/security-requirements.md", () => {
  test("names the tests of each claim", () => {
    expect(rows.length).toBeGreaterThan(50);
    const unproved = rows.filter((row) => testsIn(row).length === 0 && !row.includes("by reading:"));
    expect(unproved).toEqual([]);
  });

  test.each([...new Set(rows.flatMap(testsIn))])("names %s, which contains tests", (file) => {
    expect(readFileSync(join(ROOT, file), "utf8")).toMatch(/\b(?:test|describe|Attack)\b/);
  });
});
