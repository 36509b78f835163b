import { readJsonLines, type ExportFormat, type StoredEvent } from "./format.ts";

/** JSON objects, their members in the documented order. */
export const jsonl: ExportFormat = {
  head: "",
  line: ({ position, id, stream, version, type, time, data, meta, hash }) =>
    `${JSON.stringify({ position, id, stream, version, type, time, data, meta, hash })}\n`,
  createReader: () => readJsonLines((line) => line as unknown as StoredEvent),
};
