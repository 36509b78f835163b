import { ServiceError } from "../../platform/service-error.ts";
import { columnFault, shownName, toHeader, type Columns, type Header } from "./header.ts";
import { ROWS_MAX } from "./format-and-limits.ts";
import type { Cells, FileRow } from "./row.ts";

/** Reads the rows of a JSON file: an array of objects, or an object whose only member is such an array. */
export function* readJsonRows(text: string, columns: Columns): Generator<FileRow> {
  const scanned = scan(text);
  if ("fault" in scanned) throw new ServiceError("invalid", `the file ${scanned.fault}`);
  const entries = readEntries(text, columns);
  const headerOf = createHeaders(columns);
  for (const [index, entry] of entries.entries()) yield toRow(entry, scanned.lines[index] ?? 1, headerOf);
}

/** Reads the rows of a JSON Lines file, one object on each line. Blank lines are skipped. */
export function* readJsonlRows(text: string, columns: Columns): Generator<FileRow> {
  const headerOf = createHeaders(columns);
  for (const [index, content] of text.split(/\r\n|\n|\r/).entries()) {
    if (content.trim() === "") continue;
    yield readLine(content, index + 1, headerOf);
  }
}

function readLine(content: string, line: number, headerOf: HeaderOf): FileRow {
  const scanned = scan(content);
  if ("fault" in scanned) return { line, refused: { value: content, reason: `the line ${scanned.fault}` } };
  const value = tryParse(content);
  if (value === undefined) return { line, refused: { value: content, reason: "the line is not valid JSON" } };
  return toRow(value, line, headerOf);
}

function readEntries(text: string, { list }: Columns): readonly unknown[] {
  const value = tryParse(text);
  if (value === undefined) throw new ServiceError("invalid", "the file is not valid JSON");
  if (Array.isArray(value)) return value;
  // An object with other members is refused, because one of them may be the list that was meant.
  const entries = isObject(value) && Object.keys(value).length === 1 ? value[list] : undefined;
  if (Array.isArray(entries)) return entries;
  throw new ServiceError("invalid", `neither an array of objects nor {"${list}": [...]}`);
}

/** Parses JSON. Returns undefined if it is invalid, since no JSON text has that value. */
function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type HeaderOf = (keys: readonly string[], line: number) => ReturnType<typeof toHeader>;

/**
 * Creates a function that finds the meaning of an object's members. Most objects have the members of the one before,
 * whose meaning is then reused.
 */
function createHeaders(columns: Columns): HeaderOf {
  let before: { readonly keys: readonly string[]; readonly header: ReturnType<typeof toHeader> } | undefined;
  return (keys, line) => {
    const isSame = before?.keys.length === keys.length && keys.every((key, index) => key === before?.keys[index]);
    if (before === undefined || !isSame) {
      const header = toHeader(keys, columns);
      if (columns.others === "refused" && !("refusal" in header)) refuseUnknown(header.columns, columns, line);
      before = { keys, header };
    }
    return before.header;
  };
}

/**
 * Throws for an object with unknown members, as an import of CSV does for unknown columns. Otherwise the value of a
 * mistyped member would be lost.
 */
function refuseUnknown(names: Header["columns"], columns: Columns, line: number): void {
  const fault = names.map((name) => name && columnFault(name, columns)).find((text) => text);
  if (fault !== undefined) throw new ServiceError("invalid", `line ${line}: ${fault}`);
}

function toRow(entry: unknown, line: number, headerOf: HeaderOf): FileRow {
  if (!isObject(entry)) return { line, refused: { value: JSON.stringify(entry), reason: "not an object" } };
  const header = headerOf(Object.keys(entry), line);
  if ("refusal" in header) return { line, refused: header.refusal };
  const cells: Cells = new Map();
  for (const [index, value] of Object.values(entry).entries()) {
    if (header.columns[index] === null) continue;
    const column = header.columns[index] ?? "";
    const text = toText(value);
    if (text === undefined) {
      const why = typeof value === "number" ? TOO_LARGE : "neither a text, a number, true, false nor null";
      return { line, refused: { value: JSON.stringify(value), reason: `${shownName(column)}: ${why}` } };
    }
    cells.set(column, text);
  }
  return { line, cells, header, remarks: [] };
}

/** Converts a JSON value to the text that a spreadsheet's cell would hold; undefined if no cell could hold it. */
function toText(value: unknown): string | undefined {
  if (value === null) return "";
  if (typeof value === "number")
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
  return typeof value === "string" || typeof value === "boolean" ? String(value) : undefined;
}

const TOO_LARGE = "a number this large loses its last digits in JSON: write it as a string";

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Maximum depth of nested objects and lists in a JSON file. A recipient has three levels at most, and a few more if a
 * value was nested by mistake.
 */
const DEPTH_MAX = 16;

/** Maximum number of objects and lists in a JSON file: one for each row, their list, and the object around it. */
const OPENED_MAX = ROWS_MAX + 2;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Finds the line on which each entry of a JSON list begins, or the reason not to parse the text. The parser takes a
 * hundred bytes of memory for each bracket, so a file of brackets would use up the memory.
 */
function scan(text: string): { readonly lines: readonly number[] } | { readonly fault: string } {
  const listDepth = text.trimStart().startsWith("[") ? 1 : 2;
  const lines: number[] = [];
  let [line, depth, opened, awaitsEntry] = [1, 0, 0, false];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]!;
    if (sign <= " ") {
      if (sign === "\n" || (sign === "\r" && text[at + 1] !== "\n")) line += 1;
      continue;
    }
    if (awaitsEntry && sign !== "]") lines.push(line);
    awaitsEntry = false;
    if (sign === '"') at = endOfString(text, at);
    else if (sign === "]" || sign === "}") depth -= 1;
    else if (sign === "[" || sign === "{") {
      depth += 1;
      opened += 1;
      if (depth > DEPTH_MAX)
        return { fault: `is nested deeper than ${DEPTH_MAX} levels: a recipient is an object of texts` };
    }
    awaitsEntry = depth === listDepth && (sign === "[" || sign === ",");
  }
  return opened > OPENED_MAX ? { fault: `has more than ${OPENED_MAX} objects and lists` } : { lines };
}

/** Returns the position of the quote that ends the string, or the text's end if there is none. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}
