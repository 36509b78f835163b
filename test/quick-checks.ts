/**
 * `bun run quick`: fast checks of about ten seconds: format, types, lint without types, the tests of changed files, and
 * the limits in public texts. `bun run verify` and `bun run test` check everything.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ALLOCATOR } from "./run-bun-test.ts";
import { harnessesOf, STARTING_PROCESSES } from "./structure/harness-of-each-test.ts";
import { testsOf } from "./structure/find-tests-of-source.ts";

const ROOT = join(import.meta.dirname, "..");

/**
 * Tests that always run. They check limits named in public texts, which a change may make wrong although no test of the
 * changed files notices.
 */
const TEXTS = ["test/structure/figures-in-documents.test.ts", "test/structure/generated-files-are-current.test.ts"];

const gates = [
  ["bun", "fmt", "--check"],
  ["bun", "check"],
  ["bunx", "oxlint", "--deny-warnings"],
];
const tests = testsOfChanges();
if (tests.length > 0) gates.push(["bun", "test", "--parallel=2", "--no-isolate", ...tests]);
const codes = await Promise.all(gates.map(run));
process.exit(codes.every((code) => code === 0) ? 0 : 1);

/** Runs a command and prints its output only if it failed. */
async function run(command: readonly string[]): Promise<number> {
  const env = { ...ALLOCATOR, ...process.env };
  const child = Bun.spawn([...command], { cwd: ROOT, env, stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  console.log(`${code === 0 ? "ok    " : "FAILED"} ${command.join(" ")}`);
  if (code !== 0) console.log(out + err);
  return code;
}

/**
 * Returns the test files of each changed file. Tests that start processes take too long for this check, so they are
 * only named.
 */
function testsOfChanges(): readonly string[] {
  const changed = new Set(
    linesOf("diff", "--name-only", "HEAD").concat(linesOf("ls-files", "--others", "--exclude-standard")),
  );
  const own = [...changed].filter((file) => file.endsWith(".test.ts") && existsSync(join(ROOT, file)));
  const ofSources = testsOf(ROOT).flatMap(({ file, tests: all }) => (changed.has(file) ? all : []));
  const harnesses = harnessesOf(ROOT);
  const wanted = [...new Set([...TEXTS, ...own, ...ofSources])];
  const slow = wanted.filter((file) => STARTING_PROCESSES.has(harnesses.get(file) ?? ""));
  if (slow.length > 0) console.log(`not run, they start processes: bun test ${slow.join(" ")}`);
  return wanted.filter((file) => !slow.includes(file)).map((file) => `./${file}`);
}

function linesOf(...args: string[]): string[] {
  const { stdout, success } = Bun.spawnSync(["git", ...args], { cwd: ROOT });
  if (!success) throw new Error("the quick gate compares with the last commit: it needs git");
  return stdout
    .toString()
    .split("\n")
    .filter((line) => line !== "");
}
