import { CsvError, parse } from "csv-parse/sync";
import { readHeader, type Columns, type Header } from "./header.ts";
import { COLUMNS_MAX } from "./format-and-limits.ts";
import type { CellRemark } from "./cell-notes.ts";
import { isId, type Cells, type FileRow } from "./row.ts";
import { readGuarded } from "../../log/export-formats/csv.ts";
import { ServiceError } from "../../platform/service-error.ts";

/** Separators that spreadsheet programs write between cells, depending on their language. */
const DELIMITERS = [",", ";", "\t"];

/** Line ends of all systems. One CSV file may mix them, because a line appended by hand often ends differently. */
const LINE_ENDS = ["\r\n", "\n", "\r"];

/** Matches the first line `sep=;`, by which Excel tells the separator and which it does not show. */
const SEPARATOR_LINE = /^"?sep=([,;\t])"?(?:\r\n|\n|\r)/i;

/** Matches the beginning of a JSON object or list of objects. No CSV header begins like that. */
const JSON_START = /^\s*(?:\[\s*)?\{\s*"/;

interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * Reads the column names and the records of a CSV file. Throws a ServiceError (invalid) for JSON, an empty file, or
 * names in apostrophes.
 */
export function readCsvTable(text: string) {
  if (JSON_START.test(text))
    throw new ServiceError("invalid", "this is JSON, whatever its name says: give the file the ending .json or .jsonl");
  const named = SEPARATOR_LINE.exec(text);
  const body = named === null ? text : text.slice(named[0].length);
  const delimiter = named?.[1] ?? detectDelimiter(body);
  const { records, unclosedFrom } = readRecords(body, delimiter, named === null ? 1 : 2);
  const [first, ...rest] = records;
  if (first === undefined) throw new ServiceError("invalid", "the file is empty");
  const names = first.cells.map(withoutSpacedQuotes);
  const inApostrophes = names.find(isInApostrophes);
  if (inApostrophes !== undefined)
    throw new ServiceError(
      "invalid",
      `the header has ${inApostrophes.trim()} in apostrophes: export with double quotes`,
    );
  return { delimiter, names, records: rest, unclosedFrom };
}

/**
 * Reads the rows of a CSV file and refuses bad ones. Throws a ServiceError (invalid) for a file without a usable
 * header.
 */
export function* readCsvRows(text: string, columns: Columns): Generator<FileRow> {
  const { names, records, unclosedFrom } = readCsvTable(text);
  const header = readHeader(names, columns);
  for (const record of records) yield toRow(record, header, names);
  if (unclosedFrom !== undefined) {
    yield {
      line: unclosedFrom,
      refused: { value: "", reason: "a quote is opened in this row and never closed: nothing after it could be read" },
    };
  }
}

/**
 * Converts a CSV record to a row. Programs may leave out blank cells at the end of a record, or write more of them than
 * the header has.
 */
function toRow({ line, cells }: CsvRecord, header: Header, names: readonly string[]): FileRow {
  const { columns } = header;
  const fault = findRowFault(cells, names);
  if (fault !== undefined) return { line, refused: { value: cells.join(", "), reason: fault } };
  const row: Cells = new Map();
  const remarks: CellRemark[] = [];
  const missing = cells.length < columns.length ? columns.slice(cells.length).find((one) => one != null) : undefined;
  if (missing !== undefined) remarks.push({ note: "cells_missing", column: missing, value: "" });
  for (const [index, column] of columns.entries()) {
    if (column === null) continue;
    const cell = withoutSpacedQuotes(cells[index] ?? "");
    const text = withoutGuard(cell);
    if (column === undefined && cell.trim() !== "")
      return { line, refused: { value: cell, reason: `column ${index + 1} has a value, but no name in the header` } };
    if (column === undefined) continue;
    row.set(column, text);
    if (text !== cell && !isId(column)) remarks.push({ note: "guard_removed", column, value: cell });
  }
  return { line, cells: row, header, remarks };
}

/**
 * Returns why a record is refused: too many cells, quotes that a program wrote wrongly, or a repeated header. Undefined
 * if it is a usable row.
 */
function findRowFault(cells: readonly string[], names: readonly string[]): string | undefined {
  if (cells.length > names.length && cells.slice(names.length).some((cell) => cell.trim() !== "")) {
    const count = cells.length > COLUMNS_MAX ? `more than ${COLUMNS_MAX}` : cells.length;
    return `the row has ${count} columns, the header has ${names.length}: put quotes around a text that holds the separator`;
  }
  if (cells.some(hasBackslashQuotes)) return 'a quote is written as \\" in this row: export with doubled quotes ("")';
  const isHeader = names.every((name, index) => name === cells[index] || name.trim() === (cells[index] ?? "").trim());
  return isHeader ? "this row repeats the header" : undefined;
}

/**
 * Reads the records of a CSV file that are not blank, each with its line. Lines are counted here, because the parser
 * miscounts after a CRLF inside quotes.
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
        if (cells.some(isFilled)) records.push({ line, cells: cells.slice(0, CELLS_MAX) });
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

/**
 * Maximum number of cells read of a record: one more than a row may have, so that a record with too many is noticed.
 */
const CELLS_MAX = COLUMNS_MAX + 1;

/**
 * Splits a file without any quote into one record for each line. That is faster than the parser, which scans each
 * character.
 */
function splitRecords(text: string, delimiter: string, firstLine: number): CsvRecord[] {
  const records: CsvRecord[] = [];
  const lines = text.includes("\r") ? text.replaceAll(/\r\n|\r/g, "\n") : text;
  let line = firstLine;
  // Some programs write millions of blank lines below a list. As records they would take gigabytes, and as texts seconds.
  for (let start = 0, end = 0; start < lines.length; start = end + 1) {
    end = lines.indexOf("\n", start);
    if (end < 0) end = lines.length;
    const row = lines.slice(start, end);
    if (row !== "" && isFilled(row.replaceAll(delimiter, "")))
      records.push({ line, cells: row.split(delimiter, CELLS_MAX) });
    line++;
  }
  return records;
}

function isFilled(cell: string): boolean {
  return cell.trim() !== "";
}

function lineBreaks(cell: string): number {
  return /[\r\n]/.test(cell) ? (cell.match(/\r\n|\n|\r/g)?.length ?? 0) : 0;
}

/** Returns the delimiter that occurs most often in the first filled line, outside quotes. */
function detectDelimiter(text: string): string {
  const line = /^[^\S\r\n]*\S.*$/m.exec(text)?.[0].replace(/"[^"]*"/g, "") ?? "";
  const count = (delimiter: string): number => line.split(delimiter, CELLS_MAX).length;
  return DELIMITERS.reduce((best, next) => (count(next) > count(best) ? next : best));
}

/** Matches an apostrophe before a long number. A program writes it so that a spreadsheet does not round the number. */
const GUARDED_NUMBER = /^\s*'(?=\d{12,}\s*$)/;

/**
 * Matches a formula that only holds a text, such as `="123"`. A program writes it so that a spreadsheet does not round
 * the number.
 */
const TEXT_FORMULA = /^\s*="((?:[^"]|"")*)"\s*$/;

/**
 * Returns the cell's value without the apostrophe or formula that a program added so that a spreadsheet does not change
 * it.
 */
function withoutGuard(cell: string): string {
  if (cell.includes('="')) return cell.replace(TEXT_FORMULA, (_, text: string) => text.replaceAll('""', '"'));
  if (!cell.includes("'")) return cell;
  const start = cell.trimStart();
  const text = readGuarded(start.replace(GUARDED_NUMBER, ""));
  return text === start ? cell : text;
}

/**
 * Matches a quoted cell with a space before the quote, as people type it. The parser would leave these quotes in the
 * value.
 */
const SPACED_QUOTES = /^\s+"((?:[^"]|"")*)"\s*$/;

function withoutSpacedQuotes(cell: string): string {
  return !cell.includes('"') ? cell : cell.replace(SPACED_QUOTES, (_, text: string) => text.replaceAll('""', '"'));
}

/**
 * True for a cell in which a program wrote `\"` for a quote. Such a row is refused, because the end of the cell is
 * unclear.
 */
function hasBackslashQuotes(cell: string): boolean {
  return cell.includes('\\"') && cell.trimStart().startsWith('"');
}

/**
 * True for a name in apostrophes: a program that writes them in the header also writes them around cells, where quotes
 * belong.
 */
function isInApostrophes(name: string): boolean {
  return /^\s*'.+'\s*$/.test(name);
}
