/**
 * Runs every test and ends with one line `N passed, N failed` (and `N skipped` where something was). Arguments are handed
 * on to `bun test`.
 */
import { runReported, summaryOf } from "./reported.ts";

/** Only what hangs is cut: a busy machine may take as long as it likes, and what goes on after a cut disturbs others. */
const TEST_TIMEOUT_MS = 1_200_000;

const { ok, ...totals } = await runReported([`--timeout=${TEST_TIMEOUT_MS}`, ...process.argv.slice(2)]);
console.log(summaryOf(totals));
// A crash outside of any test fails the run although no test did.
process.exit(ok && totals.passed > 0 ? 0 : 1);
