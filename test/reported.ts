import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface Reported extends Totals {
  /** False also when the runner ended in an error outside of any test. */
  readonly ok: boolean;
}

/** Runs `bun test` with `args`, and takes the totals from its own report. `wrapper` is a command that runs another one. */
export async function runReported(args: readonly string[], wrapper: readonly string[] = []): Promise<Reported> {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-test-"));
  const report = join(directory, "junit.xml");
  const run = Bun.spawn(
    [...wrapper, process.execPath, "test", "--reporter=junit", `--reporter-outfile=${report}`, ...args],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  const code = await run.exited;
  const totals = count(existsSync(report) ? readFileSync(report, "utf8") : "");
  rmSync(directory, { recursive: true, force: true });
  return { ...totals, ok: code === 0 && totals.failed === 0 };
}

/** The last line of a run. */
export function summaryOf({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
}

/** The totals of a JUnit report. */
function count(xml: string): Totals {
  const totals = /<testsuites\b[^>]*>/.exec(xml)?.[0] ?? "";
  const total = (name: string): number => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(totals)?.[1] ?? 0);
  const failed = total("failures") + total("errors");
  const skipped = total("skipped");
  return { passed: total("tests") - failed - skipped, failed, skipped };
}
