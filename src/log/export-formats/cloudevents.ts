import { escapeUnits } from "../../platform/escape-controls.ts";
import { readJsonLines, type ExportFormat, type ShownEvent, type StoredEvent } from "./format.ts";

const SPEC_VERSION = "1.0";
const SOURCE = "reachlog";
const TYPE_PREFIX = "reachlog.";

/**
 * Characters that attributes may not contain and that JSON.stringify leaves as they are (CloudEvents 1.0, 3.1: String).
 */
const NOT_IN_ATTRIBUTES = /[\u007f-\u009f]|\p{Noncharacter_Code_Point}/gu;

/** Largest value of a CloudEvents Integer. */
const INTEGER_MAX = 2 ** 31 - 1;

/**
 * CloudEvents 1.0 in its JSON format. Fields without an attribute are extension attributes, named with lower-case
 * letters and digits only. `meta` and `stored` are JSON text, since attributes have no structure.
 */
export const cloudevents: ExportFormat = {
  head: "",
  line: (event) => `${JSON.stringify(toCloudEvent(event))}\n`,
  createReader: () => readJsonLines(fromCloudEvent),
};

function toCloudEvent({ position, id, stream, version, type, time, data, meta, hash, stored }: ShownEvent) {
  return {
    specversion: SPEC_VERSION,
    id,
    source: SOURCE,
    type: TYPE_PREFIX + type,
    subject: stream,
    time,
    datacontenttype: "application/json",
    sequence: String(position),
    streamversion: version,
    ...toAttributes(meta),
    meta: jsonText(meta),
    hash,
    ...(stored === undefined ? {} : { stored: jsonText(stored) }),
    data,
  };
}

/** Attributes for readers that do not parse `meta`: only written, never read back. */
function toAttributes(meta: unknown) {
  const { schema, traceparent } = (meta ?? {}) as { schema?: unknown; traceparent?: unknown };
  const isInteger = typeof schema === "number" && Number.isSafeInteger(schema) && Math.abs(schema) <= INTEGER_MAX;
  return {
    ...(isInteger ? { schemaversion: schema } : {}),
    ...(typeof traceparent === "string" && /^[\da-f-]+$/.test(traceparent) ? { traceparent } : {}),
  };
}

function fromCloudEvent(line: Readonly<Record<string, unknown>>): StoredEvent {
  const { specversion, id, source, type, subject, time, sequence, streamversion, meta, hash, data, stored } = line;
  if (specversion !== SPEC_VERSION || source !== SOURCE) throw new Error("not a CloudEvent 1.0 of reachlog");
  if (typeof type !== "string" || !type.startsWith(TYPE_PREFIX)) throw new Error("its type is not one of reachlog");
  if (typeof sequence !== "string" || !/^[1-9]\d*$/.test(sequence)) throw new Error("its sequence is not a position");
  if (typeof meta !== "string")
    throw new Error("its meta is missing: the export is of a version that did not write it");
  return {
    position: Number(sequence),
    id,
    stream: subject,
    version: streamversion,
    type: type.slice(TYPE_PREFIX.length),
    time,
    data: typeof stored === "string" ? JSON.parse(stored) : data,
    meta: JSON.parse(meta),
    hash,
  } as StoredEvent;
}

function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(NOT_IN_ATTRIBUTES, escapeUnits);
}
