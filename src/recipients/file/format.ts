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

/** What spreadsheet programs save by themselves. */
const WORKBOOKS: readonly string[] = ["xlsx", "xls", "xlsm", "ods", "numbers"];

/** What a file of that name holds; undefined: its name does not say. */
export function formatOfName(name: string): RecipientsFormat | "workbook" | undefined {
  const ending = extname(name).slice(1).toLowerCase();
  if (WORKBOOKS.includes(ending)) return "workbook";
  return Object.hasOwn(BY_ENDING, ending) ? BY_ENDING[ending] : undefined;
}

/** Largest file that is read, in bytes: it is held in memory as a whole. */
export const FILE_BYTES_MAX = 50 * 1024 * 1024;

/** Largest file that is taken over HTTP, in bytes: a hundred thousand recipients with some fields each. */
export const SENT_BYTES_MAX = 10 * 1024 * 1024;

/** The same of suppressions: a hundred thousand recipients, the id and the handle of each as a hash, in JSON Lines. */
export const SENT_SUPPRESSIONS_BYTES_MAX = 32 * 1024 * 1024;

/** The widest sheet of a spreadsheet program: exports of nearly empty ones have as many columns without a name. */
export const COLUMNS_MAX = 16_384;

/** At 100 messages a day more rows than this would take 27 years. */
export const ROWS_MAX = 1_000_000;

/** Remarks of each kind: an operator reads no more in one go, and a file of nothing but faults has a million. */
export const REMARKS_MAX = 1_000;

/** The first of many. */
export interface Some<Member> {
  readonly count: number;
  readonly first: readonly Member[];
}
