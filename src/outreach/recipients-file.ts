import { readCsv } from "./recipients-file/csv.ts";
import { decodeText } from "./recipients-file/encoding.ts";
import { ROWS_MAX } from "./recipients-file/limits.ts";
import { readJson, readJsonl } from "./recipients-file/json.ts";
import { readRow, type FileRow, type ImportedRecipient } from "./recipients-file/row.ts";
import { ServiceError } from "../platform/service-error.ts";

export type RecipientsFormat = "csv" | "json" | "jsonl";

export interface ImportedRow {
  readonly line: number;
  readonly recipient: ImportedRecipient;
}

/** What a file of recipients holds. Lines are those that an editor shows, from 1. */
export interface RecipientsFile {
  /** Each person once. */
  readonly rows: readonly ImportedRow[];
  readonly refused: readonly {
    readonly line: number;
    readonly reason: string;
  }[];
  /** The row at `line` took the place of the one at `of`: the last one wins. */
  readonly duplicates: readonly {
    readonly line: number;
    readonly of: number;
  }[];
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
  const refused: { line: number; reason: string }[] = [];
  const people = createPeople();
  let count = 0;
  for (const row of READERS[format](decodeText(file))) {
    count += 1;
    if (count > ROWS_MAX) throw new ServiceError("invalid", `the file has more than ${ROWS_MAX} rows`);
    const recipient = "refused" in row ? row.refused : readRow(row.cells);
    const reason = typeof recipient === "string" ? recipient : people.add({ line: row.line, recipient });
    if (reason !== undefined) refused.push({ line: row.line, reason });
  }
  return { rows: people.rows(), refused, duplicates: people.duplicates };
}

/** Keeps each person once, by id and by handle. */
function createPeople() {
  const kept = new Set<ImportedRow>();
  const byId = new Map<string, ImportedRow>();
  const byUsername = new Map<string, ImportedRow>();
  const duplicates: { line: number; of: number }[] = [];

  /** The reason why the row cannot be taken, or undefined. */
  function add(row: ImportedRow): string | undefined {
    const { id } = row.recipient;
    const username = row.recipient.username?.toLowerCase();
    const sameId = id === undefined ? undefined : byId.get(id);
    const sameName = username === undefined ? undefined : byUsername.get(username);
    if (sameName?.recipient.id !== undefined && id !== undefined && sameName.recipient.id !== id) {
      return `@${username} has another id on line ${sameName.line}`;
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
