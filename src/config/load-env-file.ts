import { existsSync, lstatSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { decodeUtf8, NotUtf8 } from "../platform/decode-utf8.ts";
import { namedEnvFiles, originalEnvironment } from "../platform/runtime-environment-and-env-files.ts";
import { parseEnvFile, type EnvFile } from "./env-file.ts";
import type { RawEnvironment } from "./environment.ts";
import type { Fault } from "./configuration-error.ts";

const FILE = ".env";

/** Files of settings that Bun would read too. This service does not, because its documentation does not name them. */
const NEVER_READ = [".env.local", ".env.development", ".env.production", ".env.test"] as const;

const WANTED = "a readable file in UTF-8";

/**
 * Puts the settings of `.env` into `process.env`, by the same rules on every runtime, and removes what the runtime
 * itself put there. Variables of the real environment take precedence. Returns the file's faults.
 */
export function loadEnvFile(): readonly Fault[] {
  const named = namedEnvFiles();
  const files = named.length > 0 ? named : [FILE].filter(isThere);
  const original = originalEnvironment();
  if (original === undefined) {
    if (named.length === 0 && ![FILE, ...NEVER_READ].some(isThere)) return [];
    const problem = "Bun has read it by its own rules, which change values";
    return [{ variable: files[0] ?? FILE, problem, wanted: "a start by bun --no-env-file src/main.ts" }];
  }
  const read = files.map((file) => readEnvFile(file, original));
  const wanted: RawEnvironment = { ...Object.assign({}, ...read.map(({ values }) => values)), ...original };
  for (const name of Object.keys(process.env)) if (wanted[name] === undefined) delete process.env[name];
  for (const [name, value] of Object.entries(wanted)) if (process.env[name] !== value) process.env[name] = value;
  return read.flatMap(({ faults }) => faults);
}

/** Reads the settings of one file in the form of `.env`. */
export function readEnvFile(file: string, given: RawEnvironment): EnvFile {
  try {
    return parseEnvFile(decodeUtf8(readFileSync(file)), file, given);
  } catch (fault) {
    return { values: {}, faults: [{ variable: file, problem: `${resolve(file)} ${describe(fault)}`, wanted: WANTED }] };
  }
}

/** Reads a text file that a setting names. Throws NotUtf8, and the system's errors. */
export function readSettingsFile(path: string): string {
  return decodeUtf8(readFileSync(path));
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EACCES: "may not be read by this user",
  EPERM: "may not be read by this user",
  EISDIR: "is a folder",
};

function describe(fault: unknown): string {
  if (fault instanceof NotUtf8) return `is ${fault.message}`;
  const { code = "unknown fault" } = fault as NodeJS.ErrnoException;
  return PROBLEMS[code] ?? `cannot be read (${code})`;
}

/**
 * True if the file or link exists. A broken link counts too: reading it then fails with an error, instead of leaving
 * out its settings silently.
 */
function isThere(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
}

/** Returns warnings about files next to `.env` that other programs would read and this one does not. */
export function warnOfOtherEnvFiles(): string[] {
  return NEVER_READ.filter(isVisible).map(
    (file) => `${file} is not read: move the settings of reachlog in it to .env.`,
  );
}

/** True if the file exists and this program may see it. Deno throws if it may not. */
function isVisible(file: string): boolean {
  try {
    return existsSync(file);
  } catch {
    return false;
  }
}
