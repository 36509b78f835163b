/**
 * Runs the fault tests, of the log and of the service, two files at a time, and ends with one line `N passed, N failed`
 * (and `N skipped` where something was). Most want root and some tools: what cannot be done here is skipped.
 * Arguments choose the files whose path holds one of them.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
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
};

const root = join(import.meta.dirname, "../..");
const wanted = process.argv.slice(2);
const files = FOLDERS.flatMap((folder) => faultTestsIn(folder)).filter(isWanted);

tellWhatIsMissing();
const wrapper = mountsOfTheirOwn();
const totals = { passed: 0, failed: 0, skipped: 0 };
const broken: string[] = [];
const left = [...files];
await Promise.all(Array.from({ length: FILES_AT_ONCE }, runSome));
for (const file of broken) console.log(`failed: ${file}`);
console.log(summaryOf(totals));
process.exit(broken.length > 0 || totals.passed === 0 ? 1 : 0);

async function runSome(): Promise<void> {
  for (let file = left.shift(); file !== undefined; file = left.shift()) {
    const startedAt = performance.now();
    // A process for each: what one file's faults leave behind, or break off, is no other file's matter.
    const reported = await runReported([`--timeout=${TEST_TIMEOUT_MS}`, file], { wrapper, keepsPrinted: true });
    console.log(`${reported.printed.trimEnd()}\n${Math.round((performance.now() - startedAt) / 1000)} s\n`);
    totals.passed += reported.passed;
    totals.failed += reported.failed;
    totals.skipped += reported.skipped;
    if (!reported.ok) broken.push(file);
  }
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
