import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** Path of the program's source. */
export const MAIN = join(ROOT, "src/main.ts");

/** How the service's processes run in tests: `bun` or `deno` from source, or the path of a binary. */
export const RUNTIME = process.env["RUNTIME"] ?? "bun";

/** Deno's cache of compiled modules, shared by the whole run of tests: compiling them takes longer than a start. */
export const DENO_DIR = join(tmpdir(), "deno");

/**
 * Environment variables for the runtime itself. Bun's allocator is set as in the processes that run the tests.
 */
export const RUNTIME_ENV: Readonly<Record<string, string>> =
  RUNTIME === "deno"
    ? { DENO_DIR }
    : Object.fromEntries(
        Object.entries(process.env).flatMap(([name, value]) =>
          name.startsWith("MIMALLOC_") && value !== undefined ? [[name, value]] : [],
        ),
      );

const PROGRAMS: Readonly<Record<string, () => readonly string[]>> = {
  bun: () => [process.execPath],
  deno: () => [denoProgram(), "run", "--allow-all", "--no-prompt"],
};

const isBinary = RUNTIME.includes("/");

/**
 * Builds the command line of the service or, if given, of `module`; `flags` are for the runtime. A binary accepts
 * neither `flags` nor `module`, so with them Bun runs the source instead.
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

/** Builds the binary that is shipped, which starts three times as fast as the source. Returns its path. */
export function buildBinary(folder: string): string {
  const path = join(folder, "reachlog");
  const built = Bun.spawnSync([process.execPath, join(ROOT, "packaging/build-executable.ts"), "--out", path]);
  if (!built.success) throw new Error(built.stderr.toString());
  return path;
}

/**
 * Returns the path of the Deno that the lock file names. Deno's package would link it by an install script, and
 * packages may run none here.
 */
export function denoProgram(): string {
  const { platform, arch } = process;
  const name = `@deno/${platform}-${arch}${platform === "linux" ? "-glibc" : ""}/package.json`;
  return join(dirname(createRequire(import.meta.resolve("deno/install_api.cjs")).resolve(name)), "deno");
}
