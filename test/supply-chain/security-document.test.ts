// On no harness.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const DOCUMENT = readFileSync(join(ROOT, "SECURITY.md"), "utf8");

/** Matches a test named as `file › name`. The name is the one in the file, without the values that a table fills in. */
const NAMED = /`((?:test|events)\/[\w./-]+\.ts) › ([^`]+)`/g;

const named = [...DOCUMENT.matchAll(NAMED)].map(([, file = "", name = ""]) => [file, name] as const);

/** Rows of the tables about requirements that are met. */
function rows(): string[] {
  const met = DOCUMENT.slice(DOCUMENT.indexOf("## OWASP API"), DOCUMENT.indexOf("Not met, or left"));
  return met.split("\n").filter((line) => /^\| (?:API)?\d/.test(line));
}

describe("SECURITY.md", () => {
  test.each([...new Set(named.map(([file]) => file))])("names tests that are in %s", (file) => {
    expect([file, existsSync(join(ROOT, file))]).toEqual([file, true]);
    const source = readFileSync(join(ROOT, file), "utf8");
    const missing = named.filter(([of, name]) => of === file && !(name.length > 12 && source.includes(name)));
    expect(missing).toEqual([]);
  });

  test("says of each claim which test shows it", () => {
    expect(rows().length).toBeGreaterThan(50);
    const unproved = rows().filter((row) => !row.includes("›") && !row.includes("by reading:"));
    expect(unproved).toEqual([]);
  });

  test("claims nothing for tests that are not named as such", () => {
    const [code, tests] = [DOCUMENT.match(/›/g) ?? [], named];
    // Every arrow belongs to a named test.
    expect(code.length).toBe(tests.length);
  });
});
