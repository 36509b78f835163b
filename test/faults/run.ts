/**
 * Runs the fault tests of the log and of the service, and prints their figures and totals. Most need root and some
 * tools, and are skipped without them. Arguments select files by a part of their path, `--named` tests by their name.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildBinary } from "../harness/bun-deno-or-binary.ts";
import { runReported, summaryOf } from "../run-bun-test.ts";

const FOLDERS = ["events/eventstore-lite/faults", "test/faults"];

/**
 * Time limit of a test, in ms. It is passed in the environment, because the tests' preloaded harness overrides the
 * limit on the command line of `bun test`.
 */
const TEST_TIMEOUT_MS = 5_400_000;

/** Number of test files that run at once: two, because they mostly wait for a kill, a timer or a lease. */
const FILES_AT_ONCE = 2;

/** Programs that the tests use, with their Debian packages. */
const PACKAGES = {
  strace: "strace",
  faketime: "faketime",
  sqlite3: "sqlite3",
  xfs_io: "xfsprogs",
  "mkfs.ext4": "e2fsprogs",
  mount: "mount",
  zsh: "zsh",
  fish: "fish",
  promtool: "prometheus",
  pgbouncer: "pgbouncer",
  go: "golang-go golang-golang-x-mod-dev",
};

const root = join(import.meta.dirname, "../..");
const { values, positionals: wanted } = parseArgs({
  args: process.argv.slice(2),
  options: { whole: { type: "boolean", default: false }, named: { type: "string" } },
  allowPositionals: true,
});
// A whole run tries all cases. By default the longest tests try only some, so that everything takes at most ten minutes
// on a quiet machine.
if (values.whole || wanted.length > 0) process.env["FAULTS_WHOLE"] = "1";
// Puts the tests' files on the real disk, because some faults depend on how slow the disk is.
process.env["TMPDIR"] ??= tmpdir();
process.env["TEST_TIMEOUT_MS"] ??= String(TEST_TIMEOUT_MS);
process.env["RUNTIME"] ??= ownBinary();
const all = FOLDERS.flatMap((folder) => faultTestsIn(folder));
const files = [...all, ...(values.whole || wanted.length > 0 ? longTests() : [])].filter(isWanted);

tellWhatIsMissing();
const wrapper = mountsOfTheirOwn();
const totals = { passed: 0, failed: 0, skipped: 0 };
const broken: string[] = [];
const figures: string[] = [];
const left = [...files];
await Promise.all(Array.from({ length: FILES_AT_ONCE }, runSome));
console.log(`\nWhat was tried, and what was seen:\n${figures.toSorted().join("\n")}\n`);
for (const file of broken) console.log(`failed: ${file}`);
console.log(summaryOf(totals));
process.exit(broken.length > 0 || totals.passed === 0 ? 1 : 0);

function ownBinary(): string {
  const folder = mkdtempSync(join(tmpdir(), "reachlog-binary-"));
  process.on("exit", () => rmSync(folder, { recursive: true }));
  return buildBinary(folder);
}

async function runSome(): Promise<void> {
  for (let file = left.shift(); file !== undefined; file = left.shift()) {
    const startedAt = performance.now();
    // Each file runs in a separate process, so that its faults cannot affect other files.
    const args = values.named === undefined ? [file] : [file, "-t", values.named];
    const reported = await runReported(args, { wrapper, keepsPrinted: true });
    console.log(`${reported.printed.trimEnd()}\n${Math.round((performance.now() - startedAt) / 1000)} s\n`);
    figures.push(...figuresIn(reported.printed));
    totals.passed += reported.passed;
    totals.failed += reported.failed;
    totals.skipped += reported.skipped;
    if (!reported.ok) broken.push(file);
  }
}

/** Lines in which a test reports figures: a name, a colon, and numbers. */
function figuresIn(printed: string): string[] {
  return printed
    .split("\n")
    .filter((line) => /^[^({|│┌├└].*: .*\d/.test(line) && !/^\s|^(?:error|bun test)\b/.test(line));
}

function faultTestsIn(folder: string): string[] {
  const names = readdirSync(join(root, folder)).filter((name) => name.endsWith(".fault.ts"));
  return names.sort().map((name) => join(root, folder, name));
}

/** Returns the test files that try only some of their cases in `bun run test`. Here they try all cases. */
function longTests(): string[] {
  const tests = [...new Bun.Glob("test/**/*.test.ts").scanSync(root)].sort().map((file) => join(root, file));
  return tests.filter((file) => readFileSync(file, "utf8").includes("harness/case-count.ts"));
}

function isWanted(file: string): boolean {
  return wanted.length === 0 || wanted.some((part) => file.includes(part));
}

function tellWhatIsMissing(): void {
  if (process.getuid?.() !== 0) console.log("not root: what mounts a disk or stops a clock is skipped");
  const missing = Object.entries(PACKAGES).filter(([program]) => Bun.which(program) === null);
  for (const [program, name] of missing) console.log(`${program} is missing (Debian: apt-get install ${name})`);
}

/**
 * Returns the command that runs tests in a separate mount namespace, so that their mounts disappear however the tests
 * end; empty if the system forbids it.
 */
function mountsOfTheirOwn(): string[] {
  const wrapper = ["unshare", "--mount"];
  const isPossible = Bun.which("unshare") !== null && Bun.spawnSync([...wrapper, "true"]).success;
  return isPossible ? wrapper : [];
}
