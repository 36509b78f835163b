import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Settings of the allocator of processes that run tests. */
export const ALLOCATOR = {
  /** No memory is returned until a process ends, which saves a quarter of a run's processor time. */
  MIMALLOC_PURGE_DELAY: "-1",
  /**
   * The allocator's own thread does not search used pages for unused memory. That saves another tenth or more of the
   * processor time.
   */
  MIMALLOC_PURGE_HOLES: "0",
} as const;

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface Reported extends Totals {
  /** True if no test failed and the runner ended without an error outside of a test. */
  readonly ok: boolean;
  /** Output of the runner if it was kept; otherwise empty. */
  readonly printed: string;
  /** One text for each failed test: the file and the name, then the error with the values that repeat the failure. */
  readonly failures: readonly string[];
}

/** Maximum length of a failure's text. A random history that failed takes most of it. */
const FAILURE_LENGTH = 6_000;

export interface RunOptions {
  /** Words of a command that runs another one, put before `bun test`. */
  readonly wrapper?: readonly string[];
  /** True to keep the output instead of printing it, for parallel runs. */
  readonly keepsPrinted?: boolean;
}

/** Runs `bun test` with `args`; the totals are from its own report. */
export async function runReported(
  args: readonly string[],
  { wrapper = [], keepsPrinted = false }: RunOptions = {},
): Promise<Reported> {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-test-"));
  const report = join(directory, "junit.xml");
  const printed = join(directory, "printed.txt");
  // stdout and stderr share one file position, so that neither overwrites the other.
  const out = keepsPrinted ? openSync(printed, "a") : "inherit";
  const run = Bun.spawn(
    [...wrapper, process.execPath, "test", "--reporter=junit", `--reporter-outfile=${report}`, ...args],
    // The environment is passed explicitly, because variables that were set after the start would be missing.
    { env: process.env, stdio: ["ignore", out, out] },
  );
  const code = await run.exited;
  if (out !== "inherit") closeSync(out);
  const xml = existsSync(report) ? readFileSync(report, "utf8") : "";
  const totals = count(xml);
  const kept = existsSync(printed) ? readFileSync(printed, "utf8") : "";
  rmSync(directory, { recursive: true, force: true });
  const ok = code === 0 && totals.failed === 0;
  // A run with an error outside of any test, or without tests, counts as one failure.
  const failed = ok ? 0 : Math.max(1, totals.failed);
  return { ...totals, failed, ok: ok && totals.passed + totals.skipped > 0, printed: kept, failures: failuresIn(xml) };
}

/** Joins the reports of runs that together are one run. */
export function sumUp(runs: readonly Reported[]): Reported {
  const total = (name: keyof Totals): number => runs.reduce((sum, run) => sum + run[name], 0);
  return {
    passed: total("passed"),
    failed: total("failed"),
    skipped: total("skipped"),
    ok: runs.every(({ ok }) => ok),
    printed: runs.map(({ printed }) => printed).join(""),
    failures: runs.flatMap(({ failures }) => failures),
  };
}

/** The last line of a run. */
export function summaryOf({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
}

/** Reads the totals of a JUnit report. */
function count(xml: string): Totals {
  const totals = /<testsuites\b[^>]*>/.exec(xml)?.[0] ?? "";
  const total = (name: string): number => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(totals)?.[1] ?? 0);
  const failed = total("failures") + total("errors");
  const skipped = total("skipped");
  return { passed: total("tests") - failed - skipped, failed, skipped };
}

/** Reads the failures of a JUnit report, with the error's text as the runner wrote it. */
function failuresIn(xml: string): readonly string[] {
  const failed = /<testcase name="([^"]*)"[^>]*\bfile="([^"]*)"[^>]*>\s*<(?:failure|error)\b[^>]*>([^<]*)</g;
  return [...xml.matchAll(failed)].map(([, name = "", file = "", error = ""]) =>
    unescaped(`${file}: ${name}\n${error.trim()}`).slice(0, FAILURE_LENGTH),
  );
}

/** Puts the characters back that XML writes as entities. */
function unescaped(text: string): string {
  const named: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return text.replace(/&(?:#(\d+)|(\w+));/g, (whole, code?: string, name = "") =>
    code === undefined ? (named[name] ?? whole) : String.fromCodePoint(Number(code)),
  );
}
