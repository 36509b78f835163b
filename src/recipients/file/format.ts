import { extname } from "node:path";

export const FORMATS = ["csv", "json", "jsonl"] as const;
export type RecipientsFormat = (typeof FORMATS)[number];

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
