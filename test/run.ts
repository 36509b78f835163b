/**
 * Runs every test and ends with one line `N passed, N failed` (and `N skipped` where something was), taken from the
 * runner's own report. Arguments are handed on to `bun test`.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Process and browser tests start real programs; on a busy machine that takes its time. */
const TEST_TIMEOUT_MS = 120_000;

const directory = mkdtempSync(join(tmpdir(), "reachlog-test-"));
const report = join(directory, "junit.xml");
const run = Bun.spawn(
  [
    process.execPath,
    "test",
    `--timeout=${TEST_TIMEOUT_MS}`,
    "--reporter=junit",
    `--reporter-outfile=${report}`,
    ...process.argv.slice(2),
  ],
  { stdio: ["ignore", "inherit", "inherit"] },
);
const code = await run.exited;
const { passed, failed, skipped } = count(readFileSync(report, "utf8"));
rmSync(directory, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`);
// A crash outside of any test fails the run although no test did.
process.exit(code !== 0 || failed > 0 || passed === 0 ? 1 : 0);

/** The totals of a JUnit report. */
function count(xml: string): { passed: number; failed: number; skipped: number } {
  const totals = /<testsuites\b[^>]*>/.exec(xml)?.[0] ?? "";
  const total = (name: string): number => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(totals)?.[1] ?? 0);
  const failed = total("failures") + total("errors");
  const skipped = total("skipped");
  return { passed: total("tests") - failed - skipped, failed, skipped };
}
