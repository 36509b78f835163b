import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** The program's source. */
export const MAIN = join(ROOT, "src/main.ts");

/** What the service's processes run on: Bun or Deno, from source, or the binary whose path the environment gives. */
export const RUNTIME = process.env["RUNTIME"] ?? "bun";

/** What the runtime itself is told: Deno's cache of compiled modules is one for the whole run, and in no test's folder. */
export const RUNTIME_ENV: Readonly<Record<string, string>> =
  RUNTIME === "deno" ? { DENO_DIR: join(tmpdir(), "deno") } : {};

const PROGRAMS: Readonly<Record<string, () => readonly string[]>> = {
  bun: () => [process.execPath],
  deno: () => [denoProgram(), "run", "--allow-all", "--no-prompt"],
};

const isBinary = RUNTIME.includes("/");

/**
 * A command line of the service's, with what the runtime is told besides; `module`: of another program's. A binary is told
 * nothing and runs nothing else: both are for Bun then, and the source.
 */
export function onRuntime(
  args: readonly string[],
  { flags = [], module }: { readonly flags?: readonly string[]; readonly module?: string } = {},
): string[] {
  if (isBinary && flags.length === 0 && module === undefined) return [RUNTIME, ...args];
  const program = PROGRAMS[isBinary ? "bun" : RUNTIME];
  if (program === undefined) {
    throw new Error(`RUNTIME=${RUNTIME}: wanted is ${Object.keys(PROGRAMS).join(" or ")} or the path of a binary`);
  }
  return [...program(), ...flags, module ?? MAIN, ...args];
}

/** Builds the program as it is shipped. It starts in a third of the time that its source takes. Answers its path. */
export function buildBinary(folder: string): string {
  const path = join(folder, "reachlog");
  const built = Bun.spawnSync([process.execPath, join(ROOT, "packaging/build.ts"), "--out", path]);
  if (!built.success) throw new Error(built.stderr.toString());
  return path;
}

/** Deno as the lockfile has it. Its package would link it to its place after the installation, which no package may do here. */
export function denoProgram(): string {
  const { platform, arch } = process;
  const name = `@deno/${platform}-${arch}${platform === "linux" ? "-glibc" : ""}/package.json`;
  return join(dirname(createRequire(import.meta.resolve("deno/install_api.cjs")).resolve(name)), "deno");
}
