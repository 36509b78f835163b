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

/** Largest file that is read, in bytes. The whole file is held in memory. */
export const FILE_BYTES_MAX = 50 * 1024 * 1024;

/** Largest file that is accepted over HTTP, in bytes: a hundred thousand recipients with some fields each. */
export const SENT_BYTES_MAX = 10 * 1024 * 1024;

/**
 * Largest list of suppressions that is accepted over HTTP, in bytes: a hundred thousand recipients in JSON Lines, the
 * id and the handle of each as a hash.
 */
export const SENT_SUPPRESSIONS_BYTES_MAX = 32 * 1024 * 1024;

/**
 * Most columns of a file: those of the widest sheet of a spreadsheet program. Exports of nearly empty sheets have as
 * many columns without a name.
 */
export const COLUMNS_MAX = 16_384;

/** Most rows of a file. At 100 messages a day, more would take 27 years. */
export const ROWS_MAX = 1_000_000;

/**
 * Most remarks of each kind that are kept of a file. An operator reads no more at once, and a file of nothing but
 * faults has a million.
 */
export const REMARKS_MAX = 1_000;

/** The first items of a long list, and the number of all. */
export interface Some<Member> {
  readonly count: number;
  readonly first: readonly Member[];
}
