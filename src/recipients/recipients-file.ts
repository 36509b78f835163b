import { ServiceError } from "../platform/service-error.ts";
import { countLinesBeforeFault } from "../platform/find-invalid-utf8.ts";
import { readCsvRows } from "./file/csv.ts";
import { FILE_BYTES_MAX, type RecipientsFormat, ROWS_MAX } from "./file/format.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { shortened } from "../template/normalize-field.ts";
import { type Columns, RECIPIENT_COLUMNS, SUPPRESSION_COLUMNS } from "./file/header.ts";
import { readJsonRows, readJsonlRows } from "./file/json.ts";
import { type Cells, type FileRow, type ImportedRecipient, readRow, type RowRefusal } from "./file/row.ts";
import { type ImportedSuppression, readSuppression } from "./file/suppression-row.ts";

export interface ImportedRow {
  readonly line: number;
  readonly recipient: ImportedRecipient;
}

export interface RefusedRow {
  readonly line: number;
  /** What of the row cannot be used, and its first characters only. */
  readonly value: string;
  readonly reason: string;
}

/** Characters of a refused value: enough to find it in the file. A file of a million bad rows is to fit in memory. */
const VALUE_SHOWN_CHARS_MAX = 100;

/** The row at `line` took the place of the one at `of`: the last one wins. */
export interface Duplicate {
  readonly line: number;
  readonly of: number;
}

const READERS: Readonly<Record<RecipientsFormat, (text: string, columns: Columns) => Iterable<FileRow>>> = {
  csv: readCsvRows,
  json: readJsonRows,
  jsonl: readJsonlRows,
};

/**
 * Reads recipients, each once; lines are those that an editor shows, from 1. A row that cannot be used is refused with its
 * reason and the others go in; throws a ServiceError (invalid) when the file as a whole cannot be understood.
 */
export function parseRecipients(file: string | Uint8Array, format: RecipientsFormat, now: number) {
  const people = createPeople();
  const refused = readRows(READERS[format](decodeText(file), RECIPIENT_COLUMNS), (line, cells) => {
    const recipient = readRow(cells, now);
    return "reason" in recipient ? recipient : people.add({ line, recipient });
  });
  return { rows: people.rows(), refused, duplicates: people.duplicates };
}

export interface SuppressionRow {
  readonly line: number;
  readonly suppression: ImportedSuppression;
}

/**
 * The same of a list of suppressions, in which a repeated row may name what the other does not. `hashKey`: names the key of
 * its hashes, as {@link readSuppression} wants it.
 */
export function parseSuppressions(file: string | Uint8Array, format: RecipientsFormat, now: number, hashKey: string) {
  const rows: SuppressionRow[] = [];
  const refused = readRows(READERS[format](decodeText(file), SUPPRESSION_COLUMNS), (line, cells) => {
    const suppression = readSuppression(cells, now, hashKey);
    if ("refusal" in suppression) return suppression.refusal;
    rows.push({ line, suppression });
    return undefined;
  });
  return { rows, refused };
}

/** Hands each row to `take`, which returns why it cannot be used. Returns the refused rows. */
function readRows(rows: Iterable<FileRow>, take: (line: number, cells: Cells) => RowRefusal | undefined) {
  const refused: RefusedRow[] = [];
  let count = 0;
  for (const row of rows) {
    count += 1;
    if (count > ROWS_MAX) throw new ServiceError("invalid", `the file has more than ${ROWS_MAX} rows`);
    const { line } = row;
    const refusal = "refused" in row ? row.refused : take(line, row.cells);
    if (refusal === undefined) continue;
    refused.push({ line, value: shortened(refusal.value, VALUE_SHOWN_CHARS_MAX), reason: refusal.reason });
  }
  return refused;
}

/** Keeps each recipient once, by id and by handle. */
function createPeople() {
  const kept = new Set<ImportedRow>();
  const byId = new Map<string, ImportedRow>();
  const byUsername = new Map<string, ImportedRow>();
  const duplicates: Duplicate[] = [];

  /** Why the row cannot be taken, or undefined. */
  function add(row: ImportedRow): RowRefusal | undefined {
    const { id } = row.recipient;
    const username = row.recipient.username?.toLowerCase();
    const sameId = id === undefined ? undefined : byId.get(id);
    const sameName = username === undefined ? undefined : byUsername.get(username);
    if (sameName?.recipient.id !== undefined && id !== undefined && sameName.recipient.id !== id) {
      return { value: id, reason: `@${username} has another id on line ${sameName.line}` };
    }
    const earlier = [...new Set([sameId, sameName])].filter((one) => one !== undefined);
    for (const one of earlier) replace(one, row);
    const held = earlier.reduce(withRevocations, row);
    kept.add(held);
    if (id !== undefined) byId.set(id, held);
    if (username !== undefined) byUsername.set(username, held);
    return undefined;
  }

  function replace(earlier: ImportedRow, row: ImportedRow): void {
    const { id, username } = earlier.recipient;
    kept.delete(earlier);
    if (id !== undefined) byId.delete(id);
    if (username !== undefined) byUsername.delete(username.toLowerCase());
    duplicates.push({ line: row.line, of: earlier.line });
  }

  return { add, duplicates, rows: () => [...kept] };
}

/** The row, with what an earlier one of the same recipient takes back of consent, if the row itself does not say. */
function withRevocations(row: ImportedRow, { recipient: earlier }: ImportedRow): ImportedRow {
  const { basis, tracking } = row.recipient;
  const { consent_at, consent_source, consent_text, tracking_at, tracking_source, tracking_text } = earlier;
  const revoked = {
    ...(basis === undefined &&
      earlier.basis === "none" && { basis: earlier.basis, consent_at, consent_source, consent_text }),
    ...(tracking === undefined &&
      earlier.tracking === "denied" && { tracking: earlier.tracking, tracking_at, tracking_source, tracking_text }),
  };
  return { line: row.line, recipient: { ...row.recipient, ...omitUndefined(revoked) } };
}

const SAVE_AS = 'save it again as "CSV UTF-8"';

/** What a zip archive, and so an Excel workbook, begins with. */
const ZIP_MAGIC = [0x50, 0x4b, 0x03, 0x04];

/** First bytes that are looked at for the zeros of UTF-16 without a mark. */
const SNIFF_BYTES = 1024;

/**
 * UTF-8, or UTF-16 where a byte order mark says so (Excel's "Unicode text"). Anything else is refused:
 * a guess at a legacy code page would greet people by a mangled name.
 */
function decodeText(file: string | Uint8Array): string {
  const bytes = typeof file === "string" ? Buffer.byteLength(file) : file.byteLength;
  if (bytes > FILE_BYTES_MAX) throw new ServiceError("invalid", `the file has more than ${FILE_BYTES_MAX} bytes`);
  const text = typeof file === "string" ? file : decodeBytes(file);
  return text.replace(/^\uFEFF/, "");
}

function decodeBytes(bytes: Uint8Array): string {
  if (ZIP_MAGIC.every((byte, index) => bytes[index] === byte)) {
    throw new ServiceError("invalid", `this is an Excel workbook, not a text file: ${SAVE_AS}`);
  }
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
