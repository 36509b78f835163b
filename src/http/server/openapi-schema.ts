import type { TSchema } from "@sinclair/typebox";

type Json = Readonly<Record<string, unknown>>;

const ADDRESSES: readonly Json[] = [
  { type: "string", format: "ipv4" },
  { type: "string", format: "ipv6" },
];

/** JSON Schema formats by the names of TypeBox formats that the service checks with. */
const FORMATS: Readonly<Record<string, Json>> = {
  "http-url": { type: "string", format: "uri" },
  "ip-address": { anyOf: ADDRESSES },
  "ip-address-or-blank": { anyOf: [...ADDRESSES, { type: "string", pattern: "^\\s*$", examples: [""] }] },
};

/**
 * Converts a TypeBox schema to JSON Schema: removes TypeBox's own members, and renames formats to those that other
 * tools know.
 */
export function toJsonSchema(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema), (_name, value: unknown) => withKnownFormat(value)) as Json;
}

function withKnownFormat(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("format" in value)) return value;
  const { type: _, format, ...others } = value as Record<string, unknown>;
  const known = FORMATS[String(format)];
  return known === undefined ? value : { ...known, ...others };
}

/** The parts of JSON Schema that describe the service's requests and answers. */
interface Schema {
  readonly examples?: readonly unknown[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly type?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** Example values, by the formats of JSON Schema. */
const OF_FORMAT: Readonly<Record<string, string>> = {
  "date-time": "2026-03-01T08:00:00.000Z",
  uuid: "01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11",
  uri: "https://shop.example/",
};

/**
 * Returns a value that fits a schema: its example, or the only value that it allows. Undefined if there is neither, as
 * for a text without an example.
 */
export function createExample(schema: Schema): unknown {
  const given = schema.examples?.[0] ?? schema.const ?? schema.enum?.[0];
  if (given !== undefined) return given;
  const [either] = schema.anyOf ?? [];
  if (either !== undefined) return createExample(either);
  switch (schema.type) {
    case "object": {
      const members = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, createExample(one)] as const);
      return Object.fromEntries(members.filter(([, value]) => value !== undefined));
    }
    case "array": {
      const item = schema.items && createExample(schema.items);
      return item === undefined ? [] : [item];
    }
    case "string":
      return OF_FORMAT[schema.format ?? ""];
    case "integer":
    case "number":
      return Math.max(1, schema.minimum ?? 1);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return undefined;
  }
}
