import { CsvError, parse } from "csv-parse/sync";
import { readHeader, type Columns, type Header } from "./header.ts";
import { COLUMNS_MAX } from "./format.ts";
import type { Cells, FileRow } from "./row.ts";
import { ServiceError } from "../../platform/service-error.ts";

/** Spreadsheets of different languages separate by any of these. */
const DELIMITERS = [",", ";", "\t"];

/** All of them, whatever comes first: a line appended by hand often ends differently from those before it. */
const LINE_ENDS = ["\r\n", "\n", "\r"];
const LINE_END = /\r\n|\n|\r/;

/** Excel writes (and hides) this line to name the delimiter. */
const SEPARATOR_LINE = /^"?sep=([,;\t])"?(?:\r\n|\n|\r)/i;

interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/** Throws for a file without a usable header; a bad row becomes a refused one. */
export function* readCsvRows(text: string, columns: Columns): Generator<FileRow> {
  const named = SEPARATOR_LINE.exec(text);
  const body = named === null ? text : text.slice(named[0].length);
  const delimiter = named?.[1] ?? detectDelimiter(body);
  const { records, unclosedFrom } = readRecords(body, delimiter, named === null ? 1 : 2);
  const filled = records.filter(({ cells }) => cells.some((cell) => cell.trim() !== ""));
  const [first, ...rest] = filled;
  if (first === undefined) throw new ServiceError("invalid", "the file is empty");
  const header = readHeader(first.cells, columns);
  for (const record of rest) yield toRow(record, header);
  if (unclosedFrom !== undefined) {
    yield {
      line: unclosedFrom,
      refused: { value: "", reason: "a quote is opened in this row and never closed: nothing after it could be read" },
    };
  }
}

function toRow({ line, cells }: CsvRecord, header: Header): FileRow {
  if (cells.length !== header.length) {
    const columns = cells.length > COLUMNS_MAX ? `more than ${COLUMNS_MAX}` : cells.length;
    const reason = `the row has ${columns} columns, the header has ${header.length}`;
    return { line, refused: { value: cells.join(", "), reason } };
  }
  const row: Cells = new Map();
  for (const [index, cell] of cells.entries()) {
    const column = header[index];
    if (column !== undefined) row.set(column, cell);
    else if (cell.trim() !== "")
      return { line, refused: { value: cell, reason: `column ${index + 1} has a value, but no name in the header` } };
  }
  return { line, cells: row };
}

/**
 * The lines are counted here, because the parser's own count is off after a CRLF inside quotes. Blank lines
 * are kept as records for the same reason.
 */
function readRecords(text: string, delimiter: string, firstLine: number) {
  const records: CsvRecord[] = [];
  if (!text.includes('"')) return { records: splitRecords(text, delimiter, firstLine), unclosedFrom: undefined };
  let line = firstLine;
  try {
    parse(text, {
      delimiter,
      record_delimiter: LINE_ENDS,
      relax_column_count: true,
      relax_quotes: true,
      on_record(cells: string[]) {
        records.push({ line, cells: cells.slice(0, CELLS_MAX) });
        line += 1 + cells.reduce((sum, cell) => sum + lineBreaks(cell), 0);
        return null;
      },
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    if (error.code !== "CSV_QUOTE_NOT_CLOSED") throw new ServiceError("invalid", `line ${line}: ${error.message}`);
    return { records, unclosedFrom: line };
  }
  return { records, unclosedFrom: undefined };
}

/** One cell more than can be used, so that there were more is still seen. */
const CELLS_MAX = COLUMNS_MAX + 1;

/** Without quotes a line is a record, and need not be looked at letter by letter. */
function splitRecords(text: string, delimiter: string, firstLine: number): CsvRecord[] {
  return text.split(LINE_END).map((line, at) => ({ line: firstLine + at, cells: line.split(delimiter, CELLS_MAX) }));
}

function lineBreaks(cell: string): number {
  return /[\r\n]/.test(cell) ? (cell.match(/\r\n|\n|\r/g)?.length ?? 0) : 0;
}

/** The one that occurs most often in the first filled line, outside of quotes. */
function detectDelimiter(text: string): string {
  const line = /^[^\S\r\n]*\S.*$/m.exec(text)?.[0].replace(/"[^"]*"/g, "") ?? "";
  const count = (delimiter: string): number => line.split(delimiter, CELLS_MAX).length;
  return DELIMITERS.reduce((best, next) => (count(next) > count(best) ? next : best));
}
