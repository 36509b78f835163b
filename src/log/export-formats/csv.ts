import { CsvError, parse } from "csv-parse/sync";
import { escapeControls, escapeUnits } from "../../platform/escape-controls.ts";
import { attempt, LineFault, type ExportFormat, type ReadLines, type StoredEvent } from "./format.ts";

const COLUMNS = ["position", "id", "stream", "version", "type", "time", "data", "meta", "hash", "stored"] as const;
const HEADER = COLUMNS.join(",");
/** Of exports from before anything was encrypted. */
const OLD_HEADER = COLUMNS.slice(0, -1).join(",");

/** Cells that a spreadsheet would run as formulas, and those that look as if they were guarded already. */
const TO_BE_GUARDED = /^[=+\-@\t\r'\uff1d\uff0b\uff0d\uff20]/;
/** A spreadsheet takes what follows for text. */
const GUARD = "'";

/**
 * RFC 4180; data, meta and stored as JSON, the last one empty where nothing is encrypted. No field of an event holds a line
 * break, so that a record is a line.
 */
export const csv: ExportFormat = {
  head: `${HEADER}\r\n`,
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
      // Written without quotes, and with them by others.
      const header = first?.replaceAll('"', "");
      if (header !== HEADER && header !== OLD_HEADER) throw new LineFault(0, `the first line is not ${HEADER}`);
      columns = header.split(",").length;
      return [undefined, ...atNextLine(() => readRecords(records, columns))];
    };
  },
};

/** Where a semicolon divides cells, as in many languages, it begins one within a text too. */
const NEXT_CELL_TO_BE_GUARDED = /(;\s*)([=+\-@\uff1d\uff0b\uff0d\uff20])/g;

/** JSON in which no further cell is a formula; it says the same. */
function formatJson(value: unknown): string {
  return JSON.stringify(value).replace(
    NEXT_CELL_TO_BE_GUARDED,
    (_, divider: string, sign: string) => divider + escapeUnits(sign),
  );
}

/** A name in which nothing steers a terminal, as JSON would write that; outside of JSON it has to be taken back. */
function escaped(name: string): string {
  return escapeControls(name.replaceAll("\\u", "\\u005cu"));
}

function unescaped(text: string): string {
  return text.replace(/\\u([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** A line of a file: no cell of it is a formula to a spreadsheet. */
export function csvRecord(cells: readonly string[]): string {
  return `${cells.map(cell).join(",")}\r\n`;
}

function cell(text: string): string {
  return `"${(TO_BE_GUARDED.test(text) ? GUARD + text : text).replaceAll('"', '""')}"`;
}

/** A cell of {@link csvRecord} as it was before: without the apostrophe that keeps a spreadsheet from running it. */
export function readGuarded(text: string): string {
  return text.startsWith(GUARD) && TO_BE_GUARDED.test(text.slice(GUARD.length)) ? text.slice(GUARD.length) : text;
}

/** All lines at once; the parser takes a hundred times longer for one by one, which only a fault is worth. */
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

/** Undefined for text that is no CSV. An empty line is a record of one empty cell. */
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

/** The header is a line too. */
function atNextLine<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (fault) {
    throw fault instanceof LineFault ? new LineFault(fault.index + 1, fault.message) : fault;
  }
}
