import { readFileSync } from "node:fs";
import { formatOfName, type RecipientsFormat } from "../../outreach/recipients-file/format.ts";
import { FILE_BYTES_MAX } from "../../outreach/recipients-file/limits.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { usageError } from "../command.ts";
import { naming } from "../system-fault.ts";
import { printable } from "../table.ts";

const STDIN = "-";

/** The format that was asked for, else that of the file's ending; stdin has none. Throws a ServiceError (usage). */
export function formatOf(path: string, given: RecipientsFormat | undefined): RecipientsFormat {
  if (given !== undefined) return given;
  if (path === STDIN) return "csv";
  const format = formatOfName(path);
  if (format === "workbook") {
    throw usageError(`${printable(path)} is a workbook: save it as CSV ("CSV UTF-8") and import that`);
  }
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
