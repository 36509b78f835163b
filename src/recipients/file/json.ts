import { ServiceError } from "../../platform/service-error.ts";
import { columnFault, shownName, toHeader, type Columns, type Header } from "./header.ts";
import { ROWS_MAX } from "./format.ts";
import type { Cells, FileRow } from "./row.ts";

/** An array of objects, or an object that has it as its only member. */
export function* readJsonRows(text: string, columns: Columns): Generator<FileRow> {
  const scanned = scan(text);
  if ("fault" in scanned) throw new ServiceError("invalid", `the file ${scanned.fault}`);
  const entries = readEntries(text, columns);
  const headerOf = createHeaders(columns);
  for (const [index, entry] of entries.entries()) yield toRow(entry, scanned.lines[index] ?? 1, headerOf);
}

/** One object a line; blank lines are passed over. */
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
  // Other keys beside it are refused: one of them may be the list that was meant.
  const entries = isObject(value) && Object.keys(value).length === 1 ? value[list] : undefined;
  if (Array.isArray(entries)) return entries;
  throw new ServiceError("invalid", `neither an array of objects nor {"${list}": [...]}`);
}

/** Undefined stands for invalid: no JSON text has that value. */
function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type HeaderOf = (keys: readonly string[], line: number) => ReturnType<typeof toHeader>;

/** Most objects of a list have the members of the one before: what these mean is found once. */
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

/** As in the header of a CSV: a list that is taken in part would lose what its mistyped member says. */
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

/** The value as a spreadsheet would hold it. */
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

/** Levels of objects and lists: a recipient has three at the most, and what stands in one by mistake a few more. */
const DEPTH_MAX = 16;

/** As many as a file of the most rows has: each row, their list, and the object around it. */
const OPENED_MAX = ROWS_MAX + 2;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Scans JSON before it is parsed: finds the line on which each entry of its list begins, or why it must not be parsed. A
 * parser keeps a hundred bytes for each bracket: ten megabytes of nothing else would take a gigabyte. Anything else that is
 * wrong is left to the parser.
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

/** Where the quote is that ends the string; the text's end where none does. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}
