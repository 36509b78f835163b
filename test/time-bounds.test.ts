import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/** How long something takes is for test/bench and test/faults to say, which are run on a quiet machine. */
const STANDARD = /^(?:test|events\/eventstore-lite\/(?:test|src\/contract))\/(?!bench\/|faults\/).*\.ts$/;

/** A run that ends by the clock proves less on a busy machine, and what it leaves under way disturbs the next file. */
const BOUND = /interruptAfterTimeLimit:|skipAllAfterTimeLimit:|expect\([^;]*performance\.now\(\)[^;]*\)\.toBe/;

test("no test of the standard suite depends on how fast the machine is", () => {
  const files = [...new Bun.Glob("{test,events/eventstore-lite/{test,src/contract}}/**/*.ts").scanSync(ROOT)];
  const standard = files.filter((file) => STANDARD.test(file));
  expect(standard.length).toBeGreaterThan(300);
  expect(standard.filter((file) => BOUND.test(readFileSync(join(ROOT, file), "utf8")))).toEqual([]);
});
