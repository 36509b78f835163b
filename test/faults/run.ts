/**
 * Runs the fault tests, of the log and of the service, and ends with one line `N passed, N failed` (and `N skipped` where
 * something was). They take some minutes, and most want root and some tools: what cannot be done here is skipped.
 * Arguments choose the files whose path holds one of them.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runReported, summaryOf } from "../reported.ts";

const FOLDERS = ["events/eventstore-lite/faults", "test/faults"];

/** A single test; most name a longer time of their own. */
const TEST_TIMEOUT_MS = 120_000;

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
for (const file of files) {
  // A process for each: what one file's faults leave behind, or break off, is no other file's matter.
  const { ok, passed, failed, skipped } = await runReported([`--timeout=${TEST_TIMEOUT_MS}`, file], wrapper);
  totals.passed += passed;
  totals.failed += failed;
  totals.skipped += skipped;
  if (!ok) broken.push(file);
}
for (const file of broken) console.log(`failed: ${file}`);
console.log(summaryOf(totals));
process.exit(broken.length > 0 || totals.passed === 0 ? 1 : 0);

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
