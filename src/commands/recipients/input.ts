import { readFileSync } from "node:fs";
import { extname } from "node:path";
import type { RecipientsFormat } from "../../outreach/recipients-file.ts";
import { FILE_BYTES_MAX } from "../../outreach/recipients-file/limits.ts";
import { usageError } from "../command.ts";
import { naming } from "../system-fault.ts";
import { printable } from "../table.ts";
import { ServiceError } from "../../platform/service-error.ts";

export const FORMATS = ["csv", "json", "jsonl"] as const satisfies readonly RecipientsFormat[];

const STDIN = "-";

/** Of files; what comes by a pipe has no name, and is a CSV unless something else is said. */
const BY_ENDING: Readonly<Record<string, RecipientsFormat>> = {
  csv: "csv",
  tsv: "csv",
  txt: "csv",
  json: "json",
  jsonl: "jsonl",
};

/** What spreadsheet programs save by themselves. */
const WORKBOOKS: readonly string[] = ["xlsx", "xls", "xlsm", "ods", "numbers"];

/** The format that was asked for, else that of the file's ending. Throws a ServiceError (usage). */
export function formatOf(path: string, given: RecipientsFormat | undefined): RecipientsFormat {
  if (given !== undefined) return given;
  if (path === STDIN) return "csv";
  const ending = extname(path).slice(1).toLowerCase();
  if (WORKBOOKS.includes(ending)) {
    throw usageError(`${printable(path)} is a workbook: save it as CSV ("CSV UTF-8") and import that`);
  }
  const format = Object.hasOwn(BY_ENDING, ending) ? BY_ENDING[ending] : undefined;
  if (format === undefined) {
    throw usageError("recipients import wants a file that ends in .csv, .json or .jsonl, or --format");
  }
  return format;
}

/** The bytes of the file; `-` stands for stdin. */
export async function readInput(path: string): Promise<Uint8Array> {
  if (path !== STDIN) return naming(path, () => readFileSync(path));
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > FILE_BYTES_MAX) throw new ServiceError("invalid", `stdin has more than ${FILE_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
