import { problems } from "./problem.ts";

/** All good bodies are flat. Checking a tower of brackets costs seconds, and any of them is refused anyway. */
const LEVELS_MAX = 16;

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/**
 * Reads JSON that means one thing only, to us and to whoever read it before or reads it after us (RFC 7493): no member
 * twice, no half of a surrogate pair, no NUL. Throws the problem 400.
 */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw problems.malformed("The body is not valid JSON.");
  }
  if (!isFlat(text) && !hasLevels(value, LEVELS_MAX)) throw problems.malformed("The body is nested too deeply.");
  if (membersWritten(text) !== membersOf(value)) throw problems.malformed("The body names a member twice.");
  // Both come as escapes alone: bare, they are no JSON or no UTF-8.
  if (text.includes("\\u") && !isStorable(value)) {
    throw problems.malformed("The body holds a NUL or half of a surrogate pair.");
  }
  return value;
}

/** Whether nothing opens behind the outermost bracket, not even in a string: so it is with nearly every good body. */
function isFlat(text: string): boolean {
  return text.indexOf("{", 1) === -1 && text.indexOf("[", 1) === -1;
}

/** Whether a value has at most so many levels of objects and arrays. */
function hasLevels(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => hasLevels(inner, levels - 1));
}

/** The members in the text of valid JSON: each has one colon outside of all strings. */
function membersWritten(text: string): number {
  let members = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === COLON) members += 1;
  }
  return members;
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1;
  return slashes % 2 === 1;
}

/** The members that are left of them: of those with one name the parser keeps the last. */
function membersOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce<number>((sum, each) => sum + membersOf(each), own);
}

/** Databases end a text at a NUL, and UTF-8 has no bytes for half of a pair: neither would be kept as it came. */
function isStorable(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed() && !value.includes("\0");
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, inner]) => isStorable(name) && isStorable(inner));
}
