/**
 * Runs every test in parallel processes and ends with one line `N passed, N failed` (and `N skipped`, if any).
 * Arguments are passed on to `bun test`.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary } from "./harness/runtime.ts";
import { useTemporaryFolder } from "./harness/temporary.ts";
import { LONGEST } from "./longest.ts";
import { ALLOCATOR, runReported, summaryOf } from "./reported.ts";
import { harnessesOf, STARTING_PROCESSES } from "./structure/harness.ts";

/** Four processes for each core: test files wait half of their time for timers, processes and disks. */
const PROCESSES = 4 * availableParallelism();

/** Timeout in ms that only stops tests which hang. The parallel processes read no other setting for it. */
const TEST_TIMEOUT_MS = 1_200_000;

useTemporaryFolder();
// By default the tests use the shipped binary, built for this run; with RUNTIME=bun the source. With RUNTIME=deno only
// tests that start the service as a process run, on Deno.
process.env["RUNTIME"] ??= buildBinary(tmpdir());
for (const [name, value] of Object.entries(ALLOCATOR)) process.env[name] ??= value;
// Files share a process and its loaded code, which saves time. No file depends on what others leave behind.
const parallel = [
  `--parallel=${PROCESSES}`,
  "--no-isolate",
  `--timeout=${TEST_TIMEOUT_MS}`,
  `--timings=${longestFirst()}`,
];
const given = process.argv.slice(2);
const chosen = process.env["RUNTIME"] !== "deno" || given.length > 0 ? given : filesOfAProcess();
const { ok, failures, ...totals } = await runReported([...parallel, ...chosen]);
// Prints the errors once more at the end, because they are hidden among thousands of lines of output from parallel
// processes.
for (const failure of failures) console.log(`\n${failure}`);
console.log(summaryOf(totals));
// A crash outside of any test fails the run even if no test failed.
process.exit(ok && totals.passed > 0 ? 0 : 1);

/** Writes a file of made-up durations, by which the runner starts the slowest test files first. Returns its path. */
function longestFirst(): string {
  const all = [...new Bun.Glob("{test,events}/**/*.test.ts").scanSync(join(import.meta.dirname, ".."))];
  const missing = LONGEST.find((file) => !all.includes(file));
  if (missing !== undefined) throw new Error(`test/longest.ts names a file that is not there: ${missing}`);
  const files = Object.fromEntries(all.map((file) => [file, 1 + LONGEST.length - rankOf(file)]));
  const path = join(tmpdir(), "timings.json");
  writeFileSync(path, JSON.stringify({ version: 1, files }));
  return path;
}

function rankOf(file: string): number {
  const at = LONGEST.indexOf(file);
  return at < 0 ? LONGEST.length : at;
}

function filesOfAProcess(): readonly string[] {
  const harnesses = harnessesOf(join(import.meta.dirname, ".."));
  return [...harnesses].flatMap(([file, harness]) => (STARTING_PROCESSES.has(harness) ? [`./${file}`] : []));
}
