import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

/** What the service's processes run on: Bun, or what the environment says. */
export const RUNTIME = process.env["RUNTIME"] ?? "bun";

/** What the runtime itself is told: Deno's cache of compiled modules is one for the whole run, and in nobody's folder. */
export const RUNTIME_ENV: Readonly<Record<string, string>> =
  RUNTIME === "deno" ? { DENO_DIR: join(tmpdir(), "deno") } : {};

const PROGRAMS: Readonly<Record<string, () => readonly string[]>> = {
  bun: () => [process.execPath],
  deno: () => [denoProgram(), "run", "--allow-all", "--no-prompt"],
};

/** A command line of the service's, with what the runtime is told besides; `module`: of another program's. */
export function onRuntime(
  args: readonly string[],
  { flags = [], module = MAIN }: { readonly flags?: readonly string[]; readonly module?: string } = {},
): string[] {
  const program = PROGRAMS[RUNTIME];
  if (program === undefined) throw new Error(`RUNTIME=${RUNTIME}: wanted is ${Object.keys(PROGRAMS).join(" or ")}`);
  return [...program(), ...flags, module, ...args];
}

/** Deno as the lockfile has it. Its package would link it to its place after the installation, which no package may do here. */
export function denoProgram(): string {
  const { platform, arch } = process;
  const name = `@deno/${platform}-${arch}${platform === "linux" ? "-glibc" : ""}/package.json`;
  return join(dirname(createRequire(import.meta.resolve("deno/install_api.cjs")).resolve(name)), "deno");
}
