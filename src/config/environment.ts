import { resolve } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { NotUtf8 } from "../platform/decode-utf8.ts";
import type { Report } from "./configuration-error.ts";
import { listSettings } from "./named-webhooks.ts";
import { environmentSchema, variables, type Environment, type Variable } from "./schema.ts";

export type RawEnvironment = Readonly<Record<string, string | undefined>>;

/** Input of the functions that each read one part of the configuration. */
export interface Settings {
  /** The settings after the check against the schema. */
  readonly values: Environment;
  /** The environment variables as they were given. */
  readonly env: RawEnvironment;
  /** Reads a text file that a setting names. May throw. */
  readonly readFile: (path: string) => string;
  readonly report: Report;
}

/**
 * Maximum number of characters of a faulty value in an error message. Longer values would make the list of faults hard
 * to read.
 */
const SHOWN_CHARS_MAX = 60;

/** The character that decoders write in place of bytes that are not UTF-8. */
export const LOST_CHARACTER = "\ufffd";

/** Matches a whole number of at most 15 digits. A longer one would lose digits as a JavaScript number. */
const WHOLE_NUMBER = /^\d{1,15}$/;

const BOOLEANS = new Map([
  ["true", true],
  ["1", true],
  ["yes", true],
  ["false", false],
  ["0", false],
  ["no", false],
]);

/** Returns a setting's value without surrounding white space, which files and copying add; undefined if it is empty. */
export function readSetting(env: RawEnvironment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

/**
 * Checks every environment variable against the schema. A faulty one is reported and then has its default, so that
 * checks of several variables can still run and report their faults.
 */
export function readEnvironment(env: RawEnvironment, report: Report): Environment {
  const values: Record<string, unknown> = {};
  for (const [name, schema] of variables) {
    const raw = readSetting(env, name);
    if (raw !== undefined) values[name] = convert(schema, raw);
  }
  for (const [name] of variables) {
    if (env[name]?.includes(LOST_CHARACTER) === true)
      report.fault(name, "holds U+FFFD, the mark of a character that was lost", "the value in UTF-8");
  }
  const errors = [...Value.Errors(environmentSchema, withDefaults(values))];
  for (const name of new Set(errors.map(({ path }) => path.slice(1)))) {
    const { shown = false, description = "another value" } = variables.get(name) ?? {};
    const value = shown ? quoteValue(readSetting(env, name) ?? "") : "the value";
    report.fault(name, `${value} is not accepted`, description);
    delete values[name];
  }
  const complete = withDefaults(values);
  Value.Assert(environmentSchema, complete);
  return complete;
}

/**
 * Converts a setting's text to its schema's type, strictly: TypeBox's own conversion takes `99.9` for 99 and `0x10` for
 * 16.
 */
function convert(schema: TSchema, raw: string): unknown {
  if (schema["type"] === "integer") return WHOLE_NUMBER.test(raw) ? Number(raw) : raw;
  if (schema["type"] === "boolean") return BOOLEANS.get(raw.toLowerCase()) ?? raw;
  // Some settings take true, false, or another word.
  if (schema["anyOf"] !== undefined) return BOOLEANS.get(raw.toLowerCase()) ?? raw.toLowerCase();
  return raw;
}

function withDefaults(values: Record<string, unknown>): unknown {
  return Value.Default(environmentSchema, { ...values });
}

/** Quotes a value for a message, and cuts a long one. Not for secrets. */
export function quoteValue(raw: string): string {
  return JSON.stringify(raw.length > SHOWN_CHARS_MAX ? `${raw.slice(0, SHOWN_CHARS_MAX)}…` : raw);
}

/**
 * Reads the text of a file that a setting names. Undefined if it cannot be read, which is reported with the system's
 * code.
 */
export function readNamedFile(from: Settings, variable: Variable, file: string, wanted: string): string | undefined {
  try {
    return from.readFile(file);
  } catch (error) {
    if (error instanceof NotUtf8) {
      from.report.fault(variable, `${JSON.stringify(resolve(file))} is ${error.message}`, "the file saved in UTF-8");
      return undefined;
    }
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    from.report.fault(variable, `${JSON.stringify(resolve(file))} cannot be read${code}`, wanted);
    return undefined;
  }
}

/**
 * Matches `~` and `$NAME` in a path, which only a shell would replace. Without a shell, the path would name a new,
 * empty place.
 */
const SHELL_PATH = /^~(?:[\w.-]*\/|$)|\$(?:\{|[A-Za-z_])/;

/** Reports a setting with a path that begins with `~`, or holds `$NAME`. */
export function refuseShellPath(variable: Variable, path: string, report: Report): void {
  if (SHELL_PATH.test(path)) report.fault(variable, "~ and $NAME in a path are not replaced", "the whole path");
}

/** Splits a comma-separated value into its entries, without spaces and empty entries. */
export function commaList(raw: string | undefined): string[] {
  return (raw ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** Reports the setting `other` as missing if `name` is set, because the operator has forgotten half of a credential. */
export function requireTogether(name: Variable, other: Variable, env: RawEnvironment, report: Report): void {
  if (readSetting(env, name) !== undefined && readSetting(env, other) === undefined) {
    report.fault(other, `missing, but ${name} is set`, `both ${name} and ${other}, or neither`);
  }
}

/** Reports the missing ones of these settings if any of them is set, because they are only used together. */
export function requireAllOrNone(names: readonly Variable[], env: RawEnvironment, report: Report): void {
  const set = names.find((name) => readSetting(env, name) !== undefined);
  if (set === undefined) return;
  for (const missing of names.filter((name) => readSetting(env, name) === undefined)) {
    report.fault(missing, `missing, but ${set} is set`, `all of ${names.join(", ")}, or none`);
  }
}

/** Maximum number of edits between an unknown name and a setting for the name to count as misspelt. */
const EDITS_MAX = 2;

/**
 * Minimum length of a name that is compared with settings, because two edits turn a shorter one into another word
 * (`HOST`, `POST`, `PORT`).
 */
const NAME_CHARS_MIN = 8;

/**
 * Matches prefixes of names that hardly any other program uses. An unknown variable with such a prefix is reported,
 * because the operator would think that it has an effect.
 */
const OUR_PREFIX = /^(?:REACHLOG|LINE|WHATSAPP|TELEGRAM)_/;

/**
 * Warns of variables that look like misspelt settings. They are no faults, because the environment of a machine has
 * many names that belong to other programs.
 */
export function warnOfMisspelt(env: RawEnvironment, report: Report): void {
  const known = listSettings(env);
  for (const name of Object.keys(env).filter((key) => !known.has(key))) {
    const meant = findClosest(name, [...known]);
    if (meant !== undefined) report.warn(`${name} is no setting and has no effect. Did you mean ${meant}?`);
    else if (OUR_PREFIX.test(name)) report.warn(`${name} is no setting and has no effect.`);
  }
}

/** Returns the known name, such as that of a setting, that differs from this one by a typo, if any. */
export function findClosest(name: string, known: readonly string[]): string | undefined {
  return known.find((one) => {
    if (one.length < NAME_CHARS_MIN || Math.abs(name.length - one.length) > EDITS_MAX) return false;
    return differsByTypo(name.toUpperCase(), one.toUpperCase());
  });
}

/**
 * True if at most {@link EDITS_MAX} edits lie between two names: characters inserted, deleted or replaced (Levenshtein
 * distance). Stops once more are certain, because each start compares thousands of names.
 */
function differsByTypo(a: string, b: string): boolean {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = (above[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    if (Math.min(...current) > EDITS_MAX) return false;
    above = current;
  }
  return (above[b.length] ?? 0) <= EDITS_MAX;
}
