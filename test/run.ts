/**
 * Runs every test, a file to each of some processes at a time, and ends with one line `N passed, N failed` (and
 * `N skipped` where something was). Arguments are handed on to `bun test`.
 */
import { availableParallelism } from "node:os";
import { useTemporaryFolder } from "./harness/temporary.ts";
import { runReported, summaryOf } from "./reported.ts";

/** Two for each core: a file that waits for a timer or a process leaves the core to another one. */
const PROCESSES = 2 * availableParallelism();

/** Only what hangs is cut. The processes beside the first have no other way to know. */
const TEST_TIMEOUT_MS = 1_200_000;

useTemporaryFolder();
// What a file leaves behind in its process is no other file's matter either way, and one load of the code serves many.
const parallel = [`--parallel=${PROCESSES}`, "--no-isolate", `--timeout=${TEST_TIMEOUT_MS}`];
const { ok, ...totals } = await runReported([...parallel, ...process.argv.slice(2)]);
console.log(summaryOf(totals));
// A crash outside of any test fails the run although no test did.
process.exit(ok && totals.passed > 0 ? 0 : 1);
