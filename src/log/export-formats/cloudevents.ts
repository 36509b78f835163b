import { escapeUnits } from "../../platform/escape-control-characters.ts";
import type { ExportFormat, ShownEvent } from "./write-export-text.ts";

const SPEC_VERSION = "1.0";
const SOURCE = "reachlog";
const TYPE_PREFIX = "reachlog.";

/**
 * Matches characters that CloudEvents attributes may not contain and that JSON.stringify leaves as they are
 * (CloudEvents 1.0, 3.1: String).
 */
const NOT_IN_ATTRIBUTES = /[\u007f-\u009f]|\p{Noncharacter_Code_Point}/gu;

/** Maximum value of a CloudEvents Integer attribute. */
const INTEGER_MAX = 2 ** 31 - 1;

/**
 * CloudEvents 1.0 in its JSON format. Fields of an event without an attribute are extension attributes, whose names are
 * lower-case letters and digits. `meta` and `stored` are JSON text, since attributes have no structure.
 */
export const cloudevents: ExportFormat = {
  head: "",
  line: (event) => `${JSON.stringify(toCloudEvent(event))}\n`,
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

/** Returns the members of an event's `meta` that have a CloudEvents attribute, for readers that do not parse `meta`. */
function toAttributes(meta: unknown) {
  const { schema, traceparent } = (meta ?? {}) as { schema?: unknown; traceparent?: unknown };
  const isInteger = typeof schema === "number" && Number.isSafeInteger(schema) && Math.abs(schema) <= INTEGER_MAX;
  return {
    ...(isInteger ? { schemaversion: schema } : {}),
    ...(typeof traceparent === "string" && /^[\da-f-]+$/.test(traceparent) ? { traceparent } : {}),
  };
}

function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(NOT_IN_ATTRIBUTES, escapeUnits);
}
