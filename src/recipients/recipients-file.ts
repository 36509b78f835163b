import { readCsv } from "./file/csv.ts";
import { decodeText } from "./file/encoding.ts";
import type { RecipientsFormat } from "./file/format.ts";
import { ROWS_MAX } from "./file/limits.ts";
import { readJson, readJsonl } from "./file/json.ts";
import { readRow, type FileRow, type ImportedRecipient, type Refusal } from "./file/row.ts";
import { shortened } from "./file/shortened.ts";
import { ServiceError } from "../platform/service-error.ts";

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

/** What a file of recipients holds. Lines are those that an editor shows, from 1. */
export interface RecipientsFile {
  /** Each person once. */
  readonly rows: readonly ImportedRow[];
  readonly refused: readonly RefusedRow[];
  readonly duplicates: readonly Duplicate[];
}

/** The row at `line` took the place of the one at `of`: the last one wins. */
export interface Duplicate {
  readonly line: number;
  readonly of: number;
}

const READERS: Readonly<Record<RecipientsFormat, (text: string) => Iterable<FileRow>>> = {
  csv: readCsv,
  json: readJson,
  jsonl: readJsonl,
};

/**
 * Reads recipients. A row that cannot be used is refused with its reason and the others go in; throws
 * a ServiceError (invalid) when the file as a whole cannot be understood.
 */
export function parseRecipients(file: string | Uint8Array, format: RecipientsFormat): RecipientsFile {
  const refused: RefusedRow[] = [];
  const people = createPeople();
  let count = 0;
  for (const row of READERS[format](decodeText(file))) {
    count += 1;
    if (count > ROWS_MAX) throw new ServiceError("invalid", `the file has more than ${ROWS_MAX} rows`);
    const { line } = row;
    const recipient = "refused" in row ? row.refused : readRow(row.cells);
    const refusal = "reason" in recipient ? recipient : people.add({ line, recipient });
    if (refusal === undefined) continue;
    refused.push({ line, value: shortened(refusal.value, VALUE_SHOWN_CHARS_MAX), reason: refusal.reason });
  }
  return { rows: people.rows(), refused, duplicates: people.duplicates };
}

/** Keeps each person once, by id and by handle. */
function createPeople() {
  const kept = new Set<ImportedRow>();
  const byId = new Map<string, ImportedRow>();
  const byUsername = new Map<string, ImportedRow>();
  const duplicates: Duplicate[] = [];

  /** Why the row cannot be taken, or undefined. */
  function add(row: ImportedRow): Refusal | undefined {
    const { id } = row.recipient;
    const username = row.recipient.username?.toLowerCase();
    const sameId = id === undefined ? undefined : byId.get(id);
    const sameName = username === undefined ? undefined : byUsername.get(username);
    if (sameName?.recipient.id !== undefined && id !== undefined && sameName.recipient.id !== id) {
      return { value: id, reason: `@${username} has another id on line ${sameName.line}` };
    }
    if (sameId !== undefined) replace(sameId, row);
    if (sameName !== undefined && sameName !== sameId) replace(sameName, row);
    kept.add(row);
    if (id !== undefined) byId.set(id, row);
    if (username !== undefined) byUsername.set(username, row);
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
