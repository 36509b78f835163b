import type { RawEnvironment } from "./environment.ts";
import type { Fault } from "./configuration-error.ts";

export interface EnvFile {
  readonly values: Readonly<Record<string, string>>;
  /** Faults of lines in the `.env` file whose meaning is unclear. None repeats a value, which may be a secret. */
  readonly faults: readonly Fault[];
}

/**
 * A setting read from a `.env` file, or why its line is refused. `next`: index of the line after the setting; undefined
 * if its end is unknown.
 */
type Entry = { readonly next: number | undefined } & (
  { readonly value: string } | { readonly problem: string; readonly wanted: string }
);

const SETTING = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=(.*)$/s;

/**
 * Matches a comment after a value. A `#` with text right after it does not match, because it may be part of the value.
 */
const COMMENT = /[ \t]#(?:[ \t].*)?$/s;

/** Matches a reference, such as `$NAME`, that other readers of `.env` files replace by the value of another setting. */
const REFERENCE = /(?<!\\)\$(?:\{[^}\n]*\}|[A-Za-z_][A-Za-z0-9_]*)/g;

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\", $: "$" };

/**
 * Parses `NAME=value` lines by the grammar of docs/configure.md. Faults name the file by `path`. `given`: the real
 * environment, whose variables other programs would insert for `$NAME`.
 */
export function parseEnvFile(text: string, path: string, given: RawEnvironment): EnvFile {
  const lines = text.split(/\r?\n/);
  const values: Record<string, string> = {};
  const places = new Map<string, number>();
  const faults: Fault[] = [];
  const isSet = (name: string): boolean => given[name] !== undefined || lines.some((line) => nameOn(line) === name);
  for (let at = 0; at < lines.length;) {
    const line = lines[at]!;
    if (/^\s*(?:#.*)?$/s.test(line)) {
      at++;
      continue;
    }
    const fault = (problem: string, wanted: string): void =>
      void faults.push({ variable: `${path} line ${at + 1}`, problem, wanted });
    const [, name, rest = ""] = SETTING.exec(line) ?? [];
    if (name === undefined) {
      fault("neither NAME=value nor a comment", "quotes around a value of several lines, and # before a comment");
      at++;
      continue;
    }
    const entry = readValue(name, rest, lines, at, isSet);
    const earlier = places.get(name);
    if ("problem" in entry) fault(`${name}: ${entry.problem}`, entry.wanted);
    else if (earlier !== undefined && values[name] !== entry.value)
      fault(`${name} has another value on line ${earlier}`, "one of the two");
    else values[name] = entry.value;
    places.set(name, at + 1);
    if (entry.next === undefined) break;
    at = entry.next;
  }
  return { values, faults };
}

function nameOn(line: string): string | undefined {
  return SETTING.exec(line)?.[1];
}

function readValue(
  name: string,
  rest: string,
  lines: readonly string[],
  at: number,
  isSet: (name: string) => boolean,
): Entry {
  const trimmed = rest.trim();
  const [quote = ""] = trimmed;
  if (quote !== "" && "\"'`".includes(quote)) {
    const body = [rest.trimStart().slice(1), ...lines.slice(at + 1)].join("\n");
    return readQuoted(quote, body, at, isSet);
  }
  const next = at + 1;
  // A comment may be all that follows the `=`: in `NAME= # none` the value is empty.
  const value = rest.replace(COMMENT, "").trim();
  const isCut = value !== trimmed;
  if (/^#[ \t]|[ \t]#/.test(isCut ? value : rest) || (isCut && (/\s/.test(value) || (value !== "" && isMessage(name)))))
    return {
      next,
      problem: "a # after a space is a comment for some programs and part of the value for others",
      wanted: "quotes around a value with #, and a comment on a separate line",
    };
  if (CONTROL.test(value)) return { next, ...CONTROL_FAULT };
  if (value.includes("\\$")) return { next, problem: "holds \\$", wanted: "$ alone, which nothing replaces" };
  return checkReferences(value, isSet, next) ?? { next, value };
}

/**
 * True if the setting holds the message template. A `#` after a space in its unquoted value is refused, because
 * recipients would get a text that is cut off if the `#` began a comment.
 */
function isMessage(name: string): boolean {
  return name === "MESSAGE_TEMPLATE";
}

// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/;

const CONTROL_FAULT = { problem: "holds a control character", wanted: "the value without it" };

/** Reads a quoted value. `body` is everything after the opening quote, to the end of the file. */
function readQuoted(quote: string, body: string, at: number, isSet: (name: string) => boolean): Entry {
  const inner = quote === '"' ? /^(?:[^"\\]|\\.)*/s.exec(body)![0] : body.split(quote, 1)[0]!;
  const tail = body.slice(inner.length);
  if (tail[0] !== quote)
    return {
      next: undefined,
      problem: `the quote ${quote} is not closed`,
      wanted: `a ${quote} at the end of the value`,
    };
  const next = at + 1 + inner.split("\n").length - 1;
  const [rest = ""] = tail.slice(1).split("\n", 1);
  if (!/^\s*(?:#.*)?$/s.test(rest))
    return {
      next,
      problem: "text follows the closing quote",
      wanted: `a value in quotes that do not occur in it: ", ' or \``,
    };
  if (CONTROL.test(inner)) return { next, ...CONTROL_FAULT };
  if (quote !== '"') {
    if (inner.includes("\\$")) return { next, problem: "holds \\$", wanted: "$ alone, which nothing replaces" };
    return { next, value: inner };
  }
  const unknown = inner.match(/\\./gs)?.find(([, sign = ""]) => ESCAPES[sign] === undefined);
  if (unknown !== undefined)
    return {
      next,
      problem: "holds a backslash that escapes nothing",
      wanted: String.raw`\n, \r, \t, \", \\ or \$ in double quotes, or single quotes`,
    };
  const value = inner.replace(/\\(.)/gs, (_, sign: string) => ESCAPES[sign]!);
  return checkReferences(inner, isSet, next) ?? { next, value };
}

/**
 * Refuses a value with a reference such as `${NAME}`, which other readers of `.env` files would replace. `$50` is
 * allowed, and so is `$NAME` if no setting has that name.
 */
function checkReferences(text: string, isSet: (name: string) => boolean, next: number): Entry | undefined {
  const found = text.match(REFERENCE)?.find((one) => one.startsWith("${") || isSet(one.slice(1)));
  if (found === undefined) return undefined;
  return {
    next,
    problem: `${found.startsWith("${") ? "${…}" : found} is not replaced by another setting`,
    wanted: "the value itself, or single quotes to keep the text as it is",
  };
}

/** Formats a value as a `.env` line has it; {@link parseEnvFile} reads the same value back. */
export function formatEnvValue(value: string): string {
  if (/^[\w.,:/@+-]*$/.test(value)) return value;
  const quote = ["'", "`"].find((sign) => !value.includes(sign));
  if (quote !== undefined && !value.includes("\\$")) return `${quote}${value}${quote}`;
  return `"${value.replace(/["\\$]/g, "\\$&")}"`;
}
