import { ServiceError } from "../platform/service-error.ts";
import { readCsvRows } from "./file/csv.ts";
import { createCellNotes } from "./file/cell-notes.ts";
import { decodeText } from "./file/decode-text.ts";
import { type RecipientsFormat, ROWS_MAX } from "./file/format.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { shortened } from "../template/normalize-field.ts";
import { type Columns, LINK_COLUMNS, RECIPIENT_COLUMNS, SUPPRESSION_COLUMNS } from "./file/header.ts";
import { readJsonRows, readJsonlRows } from "./file/json.ts";
import {
  type CellRow,
  type FileRow,
  type ImportedRecipient,
  type ReadOptions,
  readRow,
  type RowRefusal,
} from "./file/row.ts";
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
export function parseRecipients(file: string | Uint8Array, format: RecipientsFormat, options: ReadOptions) {
  const people = createPeople();
  const { refused, notes } = readRows(file, format, RECIPIENT_COLUMNS, (row) => {
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
 * The same of a list of suppressions, in which a repeated row may name what the other does not. `hashKey`: names the key of
 * its hashes, as {@link readSuppression} wants it.
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

/** The same of short links. What a link needs is checked when it is added. */
export function parseLinks(file: string | Uint8Array, format: RecipientsFormat) {
  const rows: { readonly line: number; readonly code: string; readonly target: string }[] = [];
  const { refused } = readRows(file, format, LINK_COLUMNS, ({ line, cells }) => {
    const cell = (column: string): string => cells.get(column)?.trim() ?? "";
    rows.push({ line, code: cell("code"), target: cell("target") });
    return undefined;
  });
  return { rows, refused };
}

/** Hands each row to `take`, which returns why it cannot be used. Returns the refused rows, and what was noted of the others. */
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
    if (refusal !== undefined)
      refused.push({ line, value: shortened(refusal.value, VALUE_SHOWN_CHARS_MAX), reason: refusal.reason });
    else if ("remarks" in row) for (const remark of row.remarks) notes.add(line, remark);
  }
  return { refused, notes: notes.all() };
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
