import { readFileSync } from "node:fs";

/** Set when the program is built as a bundle, which starts without Bun's own reading of `.env`. */
declare const STARTED_AS: string | undefined;

/** True on Bun; for the few places where runtimes need different code. */
export const isBun: boolean = process.versions.bun !== undefined;

/**
 * Environment of the process as the system gave it. Bun adds the settings of files such as `.env` to `process.env`
 * before any code runs, and alters values. Undefined if Bun did so, and the system has no record of the original.
 */
export function originalEnvironment(record = "/proc/self/environ"): Record<string, string | undefined> | undefined {
  const isOriginal = !isBun || typeof STARTED_AS !== "undefined" || process.execArgv.includes("--no-env-file");
  if (isOriginal) return { ...process.env };
  try {
    const entries = readFileSync(record, "utf8").split("\0");
    return Object.fromEntries(entries.flatMap((entry) => splitEntry(entry)));
  } catch {
    return undefined;
  }
}

function splitEntry(entry: string): [string, string][] {
  const end = entry.indexOf("=");
  return end < 1 ? [] : [[entry.slice(0, end), entry.slice(end + 1)]];
}

/** Returns the files that the runtime's option `--env-file` names, which replace `.env`; empty if there are none. */
export function namedEnvFiles(args: readonly string[] = process.execArgv): readonly string[] {
  return args.flatMap((arg, at) => {
    if (arg === "--env-file") return args[at + 1] ?? [];
    return arg.startsWith("--env-file=") ? arg.slice("--env-file=".length) : [];
  });
}
