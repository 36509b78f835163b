// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

const FOLDERS = ["test", "events/eventstore-lite/test", "events/eventstore-lite/src/testing/contract"];

/** Folders that may measure time; they run on a quiet machine. */
const NOT_STANDARD = /^(?:bench|faults)\//;

/**
 * Pattern of a time limit within a test. On a busy machine such a test proves less, and its unfinished work disturbs
 * the next test file.
 */
const BOUND = /\b(?:interrupt|skipAll)AfterTimeLimit:|expect\([^;]*performance\.now\(\)[^;]*\)\.toBe/;

test("no test of the standard suite depends on the machine's speed", () => {
  const standard = FOLDERS.flatMap((folder) =>
    [...new Bun.Glob("**/*.ts").scanSync(join(ROOT, folder))]
      .filter((file) => !NOT_STANDARD.test(file))
      .map((file) => join(folder, file)),
  );
  expect(standard.length).toBeGreaterThan(300);
  expect(standard.filter((file) => BOUND.test(readFileSync(join(ROOT, file), "utf8")))).toEqual([]);
});
