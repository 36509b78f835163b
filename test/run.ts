/**
 * Runs every test and ends with one line `N passed, N failed` (and `N skipped` where something was). Arguments are handed
 * on to `bun test`.
 */
import { runReported, summaryOf } from "./reported.ts";

const { ok, ...totals } = await runReported(process.argv.slice(2));
console.log(summaryOf(totals));
// A crash outside of any test fails the run although no test did.
process.exit(ok && totals.passed > 0 ? 0 : 1);
