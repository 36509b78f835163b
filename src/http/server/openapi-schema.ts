import type { TSchema } from "@sinclair/typebox";

/** A JSON object, such as a part of the API document. */
export type Json = Readonly<Record<string, unknown>>;

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
 * Returns a value that fits a schema: its example or, without one, a value made by its type. Undefined if none can be
 * made, as for a text without an example.
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

/**
 * Replaces each schema that has a type name (see {@link named}) by a reference to a component, which is added to
 * `schemas` once. Removes other titles, which are words for the command line. Throws if a name has two schemas.
 */
export function referToNamed(part: unknown, schemas: Record<string, unknown>): unknown {
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map((one) => referToNamed(one, schemas));
  const { title, ...others } = part as Record<string, unknown>;
  const members = Object.entries(others).map(([name, one]) => [name, referToNamed(one, schemas)] as const);
  const schema = Object.fromEntries(members);
  const isTitled = typeof title === "string" && ("type" in part || "anyOf" in part);
  if (!isTitled) return { ...(title === undefined ? {} : { title: referToNamed(title, schemas) }), ...schema };
  if (!/^([A-Z][a-z]+)+$/.test(title)) return schema;
  if (JSON.stringify((schemas[title] ??= schema)) !== JSON.stringify(schema))
    throw new Error(`${title} names two schemas`);
  return { $ref: `#/components/schemas/${title}` };
}

export type Components = ReturnType<typeof createComponents>;

/** Collects parts of the API document as components of a kind, so that equal ones are defined only once. */
export function createComponents(kind: "parameters" | "responses") {
  const components: Record<string, Json> = {};
  const byContent = new Map<string, string>();
  return {
    /** Components by name. If parts with the same name differ, each one after the first gets a number. */
    components: components as Readonly<Record<string, Json>>,
    /** Adds a part unless an equal one was added before. Returns a reference to its component. */
    refer(name: string, part: Json): Json {
      const own = byContent.getOrInsertComputed(JSON.stringify(part), () => {
        const alike = Object.keys(components).filter((one) => one.replace(/\.\d+$/, "") === name).length;
        const free = alike === 0 ? name : `${name}.${alike + 1}`;
        components[free] = part;
        return free;
      });
      return { $ref: `#/components/${kind}/${own}` };
    },
  };
}

/** Replaces each parameter that several operations have by a reference to a component. Returns the components. */
export function shareParameters(paths: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  const { components, refer } = createComponents("parameters");
  const operations = Object.values(paths).flatMap((path) => Object.values(path)) as { parameters: readonly Json[] }[];
  const uses = new Map<string, number>();
  for (const one of operations.flatMap(({ parameters }) => parameters)) {
    const content = JSON.stringify(one);
    uses.set(content, (uses.get(content) ?? 0) + 1);
  }
  for (const operation of operations)
    operation.parameters = operation.parameters.map((one) =>
      uses.get(JSON.stringify(one)) === 1 ? one : refer(String(one["name"]), one),
    );
  return components;
}
