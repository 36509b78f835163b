import { cloudevents } from "./export-formats/cloudevents.ts";
import { csv } from "./export-formats/csv.ts";
import type { ExportFormat } from "./export-formats/format.ts";
import { jsonl } from "./export-formats/jsonl.ts";

/** What the log is exported to, and imported from. */
export const FORMATS = { jsonl, csv, cloudevents } as const satisfies Record<string, ExportFormat>;

export type Format = keyof typeof FORMATS;

export function isFormat(name: string): name is Format {
  return Object.hasOwn(FORMATS, name);
}
