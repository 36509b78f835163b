/**
 * Runs every test, a file to each of some processes at a time, and ends with one line `N passed, N failed` (and
 * `N skipped` where something was). Arguments are handed on to `bun test`. The service is started as it is shipped, as one
 * binary that is built for the run; with RUNTIME=bun from source. With RUNTIME=deno only those tests run that start it as
 * a process, and the service on Deno.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary } from "./harness/runtime.ts";
import { useTemporaryFolder } from "./harness/temporary.ts";
import { LONGEST } from "./longest.ts";
import { runReported, summaryOf } from "./reported.ts";
import { harnessesOf, STARTING_PROCESSES } from "./structure/harness.ts";

/** Three for each core: a file that waits for a timer or a process leaves the core to another one. */
const PROCESSES = 3 * availableParallelism();

/** Only what hangs is cut. The processes beside the first have no other way to know. */
const TEST_TIMEOUT_MS = 1_200_000;

useTemporaryFolder();
process.env["RUNTIME"] ??= buildBinary(tmpdir());
// Processes that keep their memory until they end spare a quarter of the run's processor time.
process.env["MIMALLOC_PURGE_DELAY"] ??= "-1";
// What a file leaves behind in its process is no other file's matter either way, and one load of the code serves many.
const parallel = [
  `--parallel=${PROCESSES}`,
  "--no-isolate",
  `--timeout=${TEST_TIMEOUT_MS}`,
  `--timings=${longestFirst()}`,
];
const given = process.argv.slice(2);
const chosen = process.env["RUNTIME"] !== "deno" || given.length > 0 ? given : filesOfAProcess();
const { ok, ...totals } = await runReported([...parallel, ...chosen]);
console.log(summaryOf(totals));
// A crash outside of any test fails the run although no test did.
process.exit(ok && totals.passed > 0 ? 0 : 1);

/** Writes how long each file takes, in an order alone, for a runner that starts the slowest first. Answers the path. */
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
