import { extname } from "node:path";

export const RECIPIENTS_FORMATS = ["csv", "json", "jsonl"] as const;
export type RecipientsFormat = (typeof RECIPIENTS_FORMATS)[number];

const BY_ENDING: Readonly<Record<string, RecipientsFormat>> = {
  csv: "csv",
  tsv: "csv",
  txt: "csv",
  json: "json",
  jsonl: "jsonl",
  ndjson: "jsonl",
};

/** Endings of the files that spreadsheet programs save by default. They are refused. */
const WORKBOOKS: readonly string[] = ["xlsx", "xls", "xlsm", "ods", "numbers"];

/** Returns the format that a file's name indicates; undefined if its ending is unknown. */
export function formatOfName(name: string): RecipientsFormat | "workbook" | undefined {
  const ending = extname(name).slice(1).toLowerCase();
  if (WORKBOOKS.includes(ending)) return "workbook";
  return Object.hasOwn(BY_ENDING, ending) ? BY_ENDING[ending] : undefined;
}

/** Maximum size of a file, in bytes. The whole file is held in memory. */
export const FILE_BYTES_MAX = 50 * 1024 * 1024;

/**
 * Maximum size of a file sent over HTTP, in bytes: enough for a hundred thousand recipients with some template fields
 * each.
 */
export const SENT_BYTES_MAX = 10 * 1024 * 1024;

/**
 * Maximum size of a list of suppressions sent over HTTP, in bytes: enough for a hundred thousand recipients in JSON
 * Lines, with a hash of the id and of the handle for each.
 */
export const SENT_SUPPRESSIONS_BYTES_MAX = 32 * 1024 * 1024;

/**
 * Maximum number of columns of a file: as many as a spreadsheet program's sheet has. Exports of nearly empty sheets
 * have that many columns without a name.
 */
export const COLUMNS_MAX = 16_384;

/** Maximum number of rows of a file. At 100 messages a day, to write to more recipients would take over 27 years. */
export const ROWS_MAX = 1_000_000;

/**
 * Maximum number of remarks of each kind kept for a file. An operator reads no more at once, and each row of a file may
 * cause one.
 */
export const REMARKS_MAX = 1_000;

/** The first items of a long list, and the number of all its items. */
export interface Some<Member> {
  readonly count: number;
  readonly first: readonly Member[];
}
