import { CsvError, parse } from "csv-parse/sync";
import { attempt, LineFault, type ExportFormat, type ReadLines, type StoredEvent } from "./format.ts";

const COLUMNS = ["position", "id", "stream", "version", "type", "time", "data", "meta", "hash"] as const;
const HEADER = COLUMNS.join(",");

/** Cells that a spreadsheet would run as formulas, and those that look as if they were guarded already. */
const TO_BE_GUARDED = /^[=+\-@\t\r']/;
/** A spreadsheet takes what follows for text. */
const GUARD = "'";

/** RFC 4180, data and meta as JSON. No field of an event holds a line break, so that a record is a line. */
export const csv: ExportFormat = {
  head: `${HEADER}\r\n`,
  line: ({ position, id, stream, version, type, time, data, meta, hash }) => {
    const cells = [id, stream, String(version), type, time, JSON.stringify(data), JSON.stringify(meta), hash];
    return `${cell(String(position))},${cells.map(cell).join(",")}\r\n`;
  },
  createReader() {
    let isHeaderRead = false;
    return (lines) => {
      if (isHeaderRead) return readRecords(lines);
      const [header, ...records] = lines;
      isHeaderRead = true;
      // Written without quotes, and with them by others.
      if (header?.replaceAll('"', "") !== HEADER) throw new LineFault(0, `the first line is not ${HEADER}`);
      return [undefined, ...atNextLine(() => readRecords(records))];
    };
  },
};

function cell(text: string): string {
  return `"${(TO_BE_GUARDED.test(text) ? GUARD + text : text).replaceAll('"', '""')}"`;
}

/** All lines at once; the parser takes a hundred times longer for one by one, which only a fault is worth. */
const readRecords: ReadLines = (lines) => {
  const records = parseRecords(lines.join("\n"));
  if (records?.length === lines.length) return records.map((cells, index) => attempt(index, () => toEvent(cells)));
  return lines.map((line, index) =>
    attempt(index, () => {
      const [cells, more] = parseRecords(line) ?? [];
      if (cells === undefined || more !== undefined)
        throw new Error("not CSV: a quote is never closed, or the file was cut off here");
      return toEvent(cells);
    }),
  );
};

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

function toEvent(cells: readonly string[]): StoredEvent | undefined {
  if (cells.length === 1 && cells[0] === "") return undefined;
  if (cells.length !== COLUMNS.length) {
    throw new Error(
      `it has ${cells.length} columns instead of ${COLUMNS.length}: damaged, or the file was cut off here`,
    );
  }
  const [position, id, stream, version, type, time, data, meta, hash] = cells.map(unguarded) as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return {
    position: Number(position),
    id,
    stream,
    version: Number(version),
    type,
    time,
    data: JSON.parse(data),
    meta: JSON.parse(meta),
    hash,
  };
}

function unguarded(text: string): string {
  return text.startsWith(GUARD) ? text.slice(GUARD.length) : text;
}

/** The header is a line too. */
function atNextLine<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (fault) {
    throw fault instanceof LineFault ? new LineFault(fault.index + 1, fault.message) : fault;
  }
}
