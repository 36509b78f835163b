import type { TObject, TSchema } from "@sinclair/typebox";
import * as fc from "fast-check";
import { eventSpecs, makeEvent, type Event, type EventType } from "../../events/event-types-and-codec.ts";

/**
 * fast-check generator of texts that survive JSON in UTF-8: whole code points, including those beyond the BMP, controls
 * and quotes.
 */
const text = fc.string({ unit: "binary", maxLength: 20 }).filter((value) => value.isWellFormed());

/** fast-check generator of values that match a schema of the kinds in our events. Throws for another kind of schema. */
function valueOf(schema: TSchema): fc.Arbitrary<unknown> {
  if (schema["anyOf"] !== undefined) return fc.oneof(...(schema["anyOf"] as TSchema[]).map(valueOf));
  if (schema["const"] !== undefined) return fc.constant(schema["const"]);
  switch (schema["type"]) {
    case "string":
      return schema["pattern"] === undefined ? text : fc.stringMatching(new RegExp(String(schema["pattern"])));
    case "number":
      return fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value));
    case "integer":
      return fc.maxSafeInteger();
    case "boolean":
      return fc.boolean();
    case "array": {
      const { items, minItems: minLength = 0 } = schema as unknown as { items: TSchema | TSchema[]; minItems?: number };
      if (Array.isArray(items)) return fc.tuple(...items.map(valueOf));
      return fc.array(valueOf(items), { minLength, maxLength: 4 });
    }
    case "object":
      return schema["patternProperties"] === undefined ? objectOf(schema as TObject) : createDictionary(schema);
    default:
      throw new Error(`no arbitrary for ${JSON.stringify(schema)}`);
  }
}

/** Returns a fast-check generator of objects with any keys, and with values of the schema's one pattern. */
function createDictionary({ patternProperties }: TSchema): fc.Arbitrary<Record<string, unknown>> {
  const [values] = Object.values(patternProperties as Record<string, TSchema>);
  const keys = fc.oneof(
    text.filter((key) => key !== "__proto__"),
    fc.constantFrom("$map", "toString", "constructor"),
  );
  return fc.dictionary(keys, valueOf(values!));
}

function objectOf(schema: TObject): fc.Arbitrary<Record<string, unknown>> {
  const values = Object.fromEntries(Object.entries(schema.properties).map(([key, of]) => [key, valueOf(of)]));
  return fc.record(values, { requiredKeys: schema.required ?? [] });
}

/**
 * Generates random events (fast-check) of all types in the catalog, with data that fits the type's schema and any
 * metadata.
 */
export const anyEvent: fc.Arbitrary<Event> = fc
  .constantFrom(...eventSpecs)
  .chain((spec) =>
    fc.record({
      type: fc.constant<EventType>(spec.type),
      id: fc.uuid({ version: 7 }),
      data: objectOf(spec.data),
      meta: fc.record({ request_id: text, traceparent: text, caller: text }, { requiredKeys: [] }),
    }),
  )
  .map(({ type, id, data, meta }) => makeEvent(type, id, data as never, meta));
