import type { Recorded } from "../../events/catalog.ts";

interface ExportFormat {
  /** What comes before the first event. */
  readonly head: string;
  /** One event, its line break included. */
  line(event: Recorded): string;
}

const COLUMNS = ["position", "id", "stream", "version", "type", "time", "data", "meta", "hash"] as const;

/** An event with its fields in the documented order. */
function shaped(event: Recorded) {
  const { position, id, stream, version, type, time, data, meta, hash } = event;
  return { position, id, stream, version, type, time, data, meta, hash };
}

/** CloudEvents 1.0 in its JSON format, one a line. */
function cloudEvent(event: Recorded) {
  const { position, id, stream, version, type, time, data, meta, hash } = event;
  return {
    specversion: "1.0",
    id,
    source: "reachlog",
    type: `reachlog.${type}`,
    subject: stream,
    time,
    datacontenttype: "application/json",
    // Extension attributes: lower-case letters and digits only.
    sequence: String(position),
    streamversion: version,
    schemaversion: meta.schema,
    ...(meta.traceparent === undefined ? {} : { traceparent: meta.traceparent }),
    hash,
    data,
  };
}

function csvCell(value: string | number | object): string {
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  // A leading apostrophe keeps a spreadsheet from running the cell as a formula.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

export const FORMATS = {
  jsonl: { head: "", line: (event) => `${JSON.stringify(shaped(event))}\n` },
  csv: {
    head: `${COLUMNS.join(",")}\r\n`,
    line: (event) => {
      const cells = shaped(event);
      return `${COLUMNS.map((column) => csvCell(cells[column])).join(",")}\r\n`;
    },
  },
  cloudevents: { head: "", line: (event) => `${JSON.stringify(cloudEvent(event))}\n` },
} as const satisfies Record<string, ExportFormat>;

export type Format = keyof typeof FORMATS;

export function isFormat(name: string): name is Format {
  return Object.hasOwn(FORMATS, name);
}
