import { CsvError, parse } from "csv-parse/sync";
import { escapeControls, escapeUnits } from "../../platform/escape-controls.ts";
import { attempt, LineFault, type ExportFormat, type ReadLines, type StoredEvent } from "./format.ts";

const COLUMNS = ["position", "id", "stream", "version", "type", "time", "data", "meta", "hash", "stored"] as const;
const HEADER = COLUMNS.join(",");
/** Header of exports from before anything was encrypted. */
const OLD_HEADER = COLUMNS.slice(0, -1).join(",");

/** Makes a spreadsheet read the file as UTF-8. */
const BYTE_ORDER_MARK = "\ufeff";

/** Characters that begin a formula in a spreadsheet, and the apostrophe that prevents one. */
const SIGNS = String.raw`[=+\-@'\uff1d\uff0b\uff0d\uff20]`;

/** Matches cells to be guarded, and those that look as if they were guarded already. */
const FORMULA = new RegExp(String.raw`^(?:\s*${SIGNS}|[\t\r])`);

/** The same within a text: if a semicolon or a tab divides cells, another cell begins after each of them. */
const NEXT_FORMULA = new RegExp(String.raw`([;\t])(?=\s*${SIGNS})`, "g");
const NEXT_GUARDED = new RegExp(String.raw`([;\t])'(?=\s*${SIGNS})`, "g");
const NEXT_SIGN = new RegExp(String.raw`([;\t]\s*)(${SIGNS})`, "g");

/** A spreadsheet takes a cell that begins with it as text. */
const GUARD = "'";

/**
 * RFC 4180; data, meta and stored are JSON, the last one empty if nothing is encrypted. No field of an event contains a
 * line break, so each record is one line.
 */
export const csv: ExportFormat = {
  head: `${BYTE_ORDER_MARK}${HEADER}\r\n`,
  line: ({ position, id, stream, version, type, time, data, meta, hash, stored }) => {
    const texts = [formatJson(data), formatJson(meta), hash, stored === undefined ? "" : formatJson(stored)];
    const cells = [escaped(id), escaped(stream), String(version), escaped(type), time, ...texts];
    return csvRecord([String(position), ...cells]);
  },
  createReader() {
    let columns = 0;
    return (lines) => {
      if (columns > 0) return readRecords(lines, columns);
      const [first, ...records] = lines;
      // We write the header without quotes; other programs may add them.
      const header = first?.replace(BYTE_ORDER_MARK, "").replaceAll('"', "");
      if (header !== HEADER && header !== OLD_HEADER) throw new LineFault(0, `the first line is not ${HEADER}`);
      columns = header.split(",").length;
      return [undefined, ...atNextLine(() => readRecords(records, columns))];
    };
  },
};

/** Formats a value as JSON in which no further cell is a formula; it parses to the same value. */
function formatJson(value: unknown): string {
  return escapeNextSigns(JSON.stringify(value));
}

/** Escapes as in JSON all that would steer a terminal or begin a formula in a name. {@link unescaped} reverses it. */
function escaped(name: string): string {
  return escapeNextSigns(escapeControls(name.replaceAll("\\u", "\\u005cu")));
}

function escapeNextSigns(text: string): string {
  return text.replace(NEXT_SIGN, (_, divider: string, sign: string) => divider + escapeUnits(sign));
}

function unescaped(text: string): string {
  return text.replace(/\\u([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** The first line of a file for people. */
export function csvHead(columns: readonly string[]): string {
  return BYTE_ORDER_MARK + csvRecord(columns);
}

/** A line of a file for people, in which no cell is a formula to a spreadsheet. */
export function csvRecord(cells: readonly string[]): string {
  return `${cells.map(cell).join(",")}\r\n`;
}

function cell(text: string): string {
  const guarded = text.replace(NEXT_FORMULA, `$1${GUARD}`);
  return `"${(FORMULA.test(text) ? GUARD + guarded : guarded).replaceAll('"', '""')}"`;
}

/** A cell of {@link csvRecord} without the apostrophes that keep a spreadsheet from running it. */
export function readGuarded(text: string): string {
  const isGuarded = text.startsWith(GUARD) && FORMULA.test(text.slice(GUARD.length));
  return (isGuarded ? text.slice(GUARD.length) : text).replace(NEXT_GUARDED, "$1");
}

/**
 * Parses all lines at once. One by one takes the parser a hundred times longer, so that is done only to locate a fault.
 */
function readRecords(lines: readonly string[], columns: number): ReturnType<ReadLines> {
  const records = parseRecords(lines.join("\n"));
  if (records?.length === lines.length) {
    return records.map((cells, index) => attempt(index, () => toEvent(cells, columns)));
  }
  return lines.map((line, index) =>
    attempt(index, () => {
      const [cells, more] = parseRecords(line) ?? [];
      if (cells === undefined || more !== undefined)
        throw new Error("not CSV: a quote is never closed, or the file was cut off here");
      return toEvent(cells, columns);
    }),
  );
}

/** Undefined if the text is not CSV. An empty line is a record of one empty cell. */
function parseRecords(text: string): readonly (readonly string[])[] | undefined {
  if (text === "") return [[""]];
  try {
    return parse(text, { record_delimiter: "\n", relax_column_count: true });
  } catch (fault) {
    if (fault instanceof CsvError) return undefined;
    throw fault;
  }
}

function toEvent(cells: readonly string[], columns: number): StoredEvent | undefined {
  if (cells.length === 1 && cells[0] === "") return undefined;
  if (cells.length !== columns) {
    throw new Error(`it has ${cells.length} columns instead of ${columns}: damaged, or the file was cut off here`);
  }
  const [position, id = "", stream = "", version, type = "", time = "", data = "", meta = "", hash = "", stored = ""] =
    cells.map((text) => (text.startsWith(GUARD) ? text.slice(GUARD.length) : text));
  return {
    position: Number(position),
    id: unescaped(id),
    stream: unescaped(stream),
    version: Number(version),
    type: unescaped(type),
    time,
    data: JSON.parse(stored === "" ? data : stored),
    meta: JSON.parse(meta),
    hash,
  };
}

/** Counts the header as a line. */
function atNextLine<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (fault) {
    throw fault instanceof LineFault ? new LineFault(fault.index + 1, fault.message) : fault;
  }
}
