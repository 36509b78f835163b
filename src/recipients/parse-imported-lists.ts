import { ServiceError } from "../platform/service-error.ts";
import { countLinesBeforeFault } from "../platform/decode-utf8.ts";
import { readCsvRows } from "./file/csv.ts";
import { createCellNotes, type RowRefusal } from "./file/cell-notes.ts";
import { FILE_BYTES_MAX, type RecipientsFormat, ROWS_MAX } from "./file/format-and-limits.ts";
import { shortened } from "../template/normalize-field.ts";
import { type Columns, LINK_COLUMNS, nameAsInFile, RECIPIENT_COLUMNS, SUPPRESSION_COLUMNS } from "./file/header.ts";
import { readJsonRows, readJsonlRows } from "./file/json.ts";
import { type CellRow, type FileRow, type ReadOptions, readRow } from "./file/row.ts";
import { type ImportedSuppression, readSuppression } from "./file/suppression-row.ts";
import { createPeople } from "./file/unique-recipients.ts";

export interface RefusedRow {
  readonly line: number;
  /** First characters of the value that caused the refusal. */
  readonly value: string;
  readonly reason: string;
}

/**
 * Maximum number of characters kept of a refused value: enough to find it in the file, and a million of them fit in
 * memory.
 */
const VALUE_SHOWN_CHARS_MAX = 100;

const READERS: Readonly<Record<RecipientsFormat, (text: string, columns: Columns) => Iterable<FileRow>>> = {
  csv: readCsvRows,
  json: readJsonRows,
  jsonl: readJsonlRows,
};

/**
 * Reads the recipients of a file, each once. Refuses unusable rows, each with a reason and its line (from 1, as in an
 * editor), and takes the others. Throws a ServiceError (invalid) if the whole file is unusable.
 */
export function parseRecipients(file: string | Uint8Array, format: RecipientsFormat, options: ReadOptions) {
  const people = createPeople();
  const columns = { ...RECIPIENT_COLUMNS, chosen: options.map };
  const { refused, notes } = readRows(file, format, columns, (row) => {
    const recipient = readRow(row, options);
    return "reason" in recipient ? recipient : people.add({ line: row.line, recipient });
  });
  return { rows: people.rows(), refused, duplicates: people.duplicates, notes };
}

export interface SuppressionRow {
  readonly line: number;
  readonly suppression: ImportedSuppression;
}

/**
 * Reads a list of suppressions as {@link parseRecipients} does, but keeps repeated rows, because each may hold another
 * name of the same recipient. `hashKey`: name of this log's hash key.
 */
export function parseSuppressions(
  file: string | Uint8Array,
  format: RecipientsFormat,
  options: ReadOptions,
  hashKey: string,
) {
  const rows: SuppressionRow[] = [];
  const { refused, notes } = readRows(file, format, SUPPRESSION_COLUMNS, (row) => {
    const suppression = readSuppression(row, options, hashKey);
    if ("refusal" in suppression) return suppression.refusal;
    rows.push({ line: row.line, suppression });
    return undefined;
  });
  return { rows, refused, notes };
}

/**
 * Reads a file of short links as {@link parseRecipients} does. The code and target of a link are checked later, when it
 * is added.
 */
export function parseLinks(file: string | Uint8Array, format: RecipientsFormat) {
  const rows: { readonly line: number; readonly code: string; readonly target: string }[] = [];
  const { refused } = readRows(file, format, LINK_COLUMNS, ({ line, cells }) => {
    const cell = (column: string): string => cells.get(column)?.trim() ?? "";
    rows.push({ line, code: cell("code"), target: cell("target") });
    return undefined;
  });
  return { rows, refused };
}

/**
 * Passes each row of a file to `take`, which returns a refusal if it cannot use the row. Returns the refused rows, and
 * the notes on cells of the others.
 */
function readRows(
  file: string | Uint8Array,
  format: RecipientsFormat,
  columns: Columns,
  take: (row: CellRow) => RowRefusal | undefined,
) {
  const refused: RefusedRow[] = [];
  const notes = createCellNotes();
  let count = 0;
  for (const row of READERS[format](decodeText(file), columns)) {
    count += 1;
    if (count > ROWS_MAX) throw new ServiceError("invalid", `the file has more than ${ROWS_MAX} rows`);
    const { line } = row;
    const refusal = "refused" in row ? row.refused : take(row);
    if (refusal !== undefined) {
      const reason = "header" in row ? nameAsInFile(refusal.reason, row.header) : refusal.reason;
      refused.push({ line, value: shortened(refusal.value, VALUE_SHOWN_CHARS_MAX), reason });
    } else if ("remarks" in row) for (const remark of row.remarks) notes.add(line, remark);
  }
  return { refused, notes: notes.all() };
}

const SAVE_AS = 'save it again as "CSV UTF-8"';

/** First bytes of spreadsheets and other files that are no text, which may have a name like `list.csv`. */
const MAGIC: readonly (readonly [name: string, bytes: readonly number[]])[] = [
  ["an Excel workbook", [0x50, 0x4b, 0x03, 0x04]],
  ["an Excel workbook of the old kind (.xls)", [0xd0, 0xcf, 0x11, 0xe0]],
  ["a PDF", [0x25, 0x50, 0x44, 0x46]],
  ["a compressed file", [0x1f, 0x8b]],
];

/**
 * Number of bytes at the file's beginning that are searched for zeros, which UTF-16 text has even without a byte order
 * mark.
 */
const SNIFF_BYTES = 1024;

/** Matches a web page, which some programs save as a table, or show to sign in instead of the file. */
const HTML = /^\s*<(?:!doctype|html|head|body|meta|title|style|script|table|div|!--)/i;
const XML = /^\s*<\?xml/i;

/**
 * Decodes a file as UTF-8, or as UTF-16 if it has a byte order mark (Excel's "Unicode text"). Refuses other encodings:
 * after a wrong guess, messages would have damaged names in them.
 */
export function decodeText(file: string | Uint8Array): string {
  const bytes = typeof file === "string" ? Buffer.byteLength(file) : file.byteLength;
  if (bytes > FILE_BYTES_MAX) throw new ServiceError("invalid", `the file has more than ${FILE_BYTES_MAX} bytes`);
  const text = (typeof file === "string" ? file : decodeBytes(file)).replace(/^\uFEFF/, "");
  const markup = HTML.test(text) ? "a web page (HTML)" : XML.test(text) ? "XML" : undefined;
  if (markup === undefined) return text;
  throw new ServiceError(
    "invalid",
    `this is ${markup}, whatever its name says: open it in a spreadsheet, and ${SAVE_AS}`,
  );
}

function decodeBytes(bytes: Uint8Array): string {
  const [magic] = MAGIC.find(([, first]) => first.every((byte, index) => bytes[index] === byte)) ?? [];
  if (magic !== undefined) throw new ServiceError("invalid", `this is ${magic}, not a text file: ${SAVE_AS}`);
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return decode(bytes, "utf-16le");
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return decode(bytes, "utf-16be");
  if (bytes.subarray(0, SNIFF_BYTES).includes(0)) {
    throw new ServiceError("invalid", `the file holds zero bytes (UTF-16 without a mark, or no text): ${SAVE_AS}`);
  }
  return decode(bytes, "utf-8");
}

function decode(bytes: Uint8Array, encoding: "utf-8" | "utf-16le" | "utf-16be"): string {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    const where = encoding === "utf-8" ? ` (line ${countLinesBeforeFault(bytes) + 1}; perhaps Windows-1252)` : "";
    throw new ServiceError("invalid", `the file is not valid ${encoding.toUpperCase()}${where}: ${SAVE_AS}`);
  }
}
