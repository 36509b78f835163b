/**
 * Runs the fault tests, of the log and of the service, two files at a time, and ends with one line `N passed, N failed`
 * (and `N skipped` where something was). Most want root and some tools: what cannot be done here is skipped.
 * At the end stands a table of what was tried and seen. Arguments choose the files whose path holds one of them; these, and
 * all with `--whole`, try each case that they have, and without either the longest try a part, so that the run takes ten
 * minutes at the most on a quiet machine.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildBinary } from "../harness/runtime.ts";
import { runReported, summaryOf } from "../reported.ts";

const FOLDERS = ["events/eventstore-lite/faults", "test/faults"];

/** A single test; most name a longer time of their own. */
const TEST_TIMEOUT_MS = 120_000;

/** Most of the time they wait: for a kill, a timer, a lease. */
const FILES_AT_ONCE = 2;

/** Programs that the tests use, and Debian's packages of them. */
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
  options: { whole: { type: "boolean", default: false } },
  allowPositionals: true,
});
if (values.whole || wanted.length > 0) process.env["FAULTS_WHOLE"] = "1";
// Faults are those of a machine as it is, with a disk that takes its time.
process.env["TMPDIR"] ??= tmpdir();
process.env["RUNTIME"] ??= ownBinary();
const files = FOLDERS.flatMap((folder) => faultTestsIn(folder)).filter(isWanted);

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
    // A process for each: what one file's faults leave behind, or break off, is no other file's matter.
    const reported = await runReported([`--timeout=${TEST_TIMEOUT_MS}`, file], { wrapper, keepsPrinted: true });
    console.log(`${reported.printed.trimEnd()}\n${Math.round((performance.now() - startedAt) / 1000)} s\n`);
    figures.push(...figuresIn(reported.printed));
    totals.passed += reported.passed;
    totals.failed += reported.failed;
    totals.skipped += reported.skipped;
    if (!reported.ok) broken.push(file);
  }
}

/** What a test tells of itself: a name, a colon, and numbers. */
function figuresIn(printed: string): string[] {
  return printed
    .split("\n")
    .filter((line) => /^[^({|│┌├└].*: .*\d/.test(line) && !/^\s|^(?:error|bun test)\b/.test(line));
}

function faultTestsIn(folder: string): string[] {
  const names = readdirSync(join(root, folder)).filter((name) => name.endsWith(".fault.ts"));
  return names.sort().map((name) => join(root, folder, name));
}

function isWanted(file: string): boolean {
  return wanted.length === 0 || wanted.some((part) => file.includes(part));
}

function tellWhatIsMissing(): void {
  if (process.getuid?.() !== 0) console.log("not root: what mounts a disk or stops a clock is skipped");
  const missing = Object.entries(PACKAGES).filter(([program]) => Bun.which(program) === null);
  for (const [program, name] of missing) console.log(`${program} is missing (Debian: apt-get install ${name})`);
}

/** Where that is allowed, mounts of the tests are seen by them alone, and gone with them however they end. */
function mountsOfTheirOwn(): string[] {
  const wrapper = ["unshare", "--mount"];
  const isPossible = Bun.which("unshare") !== null && Bun.spawnSync([...wrapper, "true"]).success;
  return isPossible ? wrapper : [];
}
