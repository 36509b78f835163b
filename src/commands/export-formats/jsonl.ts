import { readJsonLines, storedOf, type ExportFormat, type ShownEvent } from "./format.ts";

/** JSON objects, their members in the documented order. */
export const jsonl: ExportFormat = {
  head: "",
  line: ({ position, id, stream, version, type, time, data, meta, hash, stored }) =>
    `${JSON.stringify({ position, id, stream, version, type, time, data, meta, hash, stored })}\n`,
  createReader: () => readJsonLines((line) => storedOf(line as unknown as ShownEvent)),
};
