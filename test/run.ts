/**
 * Runs every test in parallel processes and ends with one line `N passed, N failed` (and `N skipped`, if any).
 * Arguments are passed on to `bun test`.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary } from "./harness/bun-deno-or-binary.ts";
import { useTemporaryFolder } from "./harness/temporary-folder.ts";
import { LONGEST } from "./slow-test-files-to-start-first.ts";
import { ALLOCATOR, runReported, sumUp, summaryOf } from "./run-bun-test.ts";
import { harnessesOf, STARTING_PROCESSES } from "./structure/harness-of-each-test.ts";

/**
 * Number of parallel processes of each pool. Each process compiles the code for itself, so more of them would need more
 * processor time.
 */
const PROCESSES = availableParallelism() + 1;

/** Timeout in ms that only stops tests which hang. The parallel processes read no other setting for it. */
const TEST_TIMEOUT_MS = 1_200_000;

useTemporaryFolder();
// By default the tests use the shipped binary, built for this run; with RUNTIME=bun the source. With RUNTIME=deno only
// tests that start the service as a process run, on Deno.
process.env["RUNTIME"] ??= buildBinary(tmpdir());
for (const [name, value] of Object.entries(ALLOCATOR)) process.env[name] ??= value;
// Files share a process and its loaded code, which saves time. No file depends on what others leave behind.
const options = ["--no-isolate", `--timeout=${TEST_TIMEOUT_MS}`, `--timings=${longestFirst()}`];
const runs = await Promise.all(
  poolsFor(process.argv.slice(2)).map((tests) => runReported([`--parallel=${PROCESSES}`, ...options, ...tests])),
);
const { ok, failures, ...totals } = sumUp(runs);
// Prints the errors once more at the end, because they are hidden among thousands of lines of output from parallel
// processes.
for (const failure of failures) console.log(`\n${failure}`);
console.log(summaryOf(totals));
// A crash outside of any test fails the run even if no test failed.
process.exit(ok && totals.passed > 0 ? 0 : 1);

/**
 * Returns the chosen tests as one pool, or by default all tests as two: those that start services, commands and
 * browsers and wait for these, and the others.
 */
function poolsFor(chosen: readonly string[]): readonly (readonly string[])[] {
  if (chosen.length > 0) return [chosen];
  const harnesses = harnessesOf(join(import.meta.dirname, ".."));
  const { starting = [], inProcess = [] } = Object.groupBy(allTests(), (file) =>
    STARTING_PROCESSES.has(harnesses.get(file) ?? "") ? "starting" : "inProcess",
  );
  const pools = process.env["RUNTIME"] === "deno" ? [starting] : [starting, inProcess];
  return pools.map((tests) => tests.map((file) => `./${file}`));
}

function allTests(): readonly string[] {
  return [...new Bun.Glob("{test,events}/**/*.test.ts").scanSync(join(import.meta.dirname, ".."))];
}

/** Writes a file of made-up durations, by which the runner starts the slowest test files first. Returns its path. */
function longestFirst(): string {
  const all = allTests();
  const missing = LONGEST.find((file) => !all.includes(file));
  if (missing !== undefined)
    throw new Error(`test/slow-test-files-to-start-first.ts names a file that is not there: ${missing}`);
  const files = Object.fromEntries(all.map((file) => [file, 1 + LONGEST.length - rankOf(file)]));
  const path = join(tmpdir(), "timings.json");
  writeFileSync(path, JSON.stringify({ version: 1, files }));
  return path;
}

function rankOf(file: string): number {
  const at = LONGEST.indexOf(file);
  return at < 0 ? LONGEST.length : at;
}
