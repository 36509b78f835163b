import { cloudevents } from "./export-formats/cloudevents.ts";
import { csv } from "./export-formats/csv.ts";
import type { ExportFormat } from "./export-formats/write-export-text.ts";

/** JSON Lines format: one JSON object for each event, its members in the documented order. */
const jsonl: ExportFormat = {
  head: "",
  line: ({ position, id, stream, version, type, time, data, meta, hash, stored }) =>
    `${JSON.stringify({ position, id, stream, version, type, time, data, meta, hash, stored })}\n`,
};

export const EXPORT_FORMATS = { jsonl, csv, cloudevents } as const satisfies Record<string, ExportFormat>;

export type Format = keyof typeof EXPORT_FORMATS;

export const FORMAT_NAMES = Object.keys(EXPORT_FORMATS) as readonly Format[];
