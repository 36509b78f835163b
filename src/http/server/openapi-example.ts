/** The parts of JSON Schema by which the service describes what it takes and answers. */
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

/** By format, as JSON Schema knows them. */
const OF_FORMAT: Readonly<Record<string, string>> = {
  "date-time": "2026-03-01T08:00:00.000Z",
  uuid: "01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11",
  uri: "https://shop.example/",
};

/**
 * A value that fits a schema: what is said to be an example, and what the schema leaves no choice in. Undefined where
 * neither is so, as for a text that could be any.
 */
export function exampleOf(schema: Schema): unknown {
  const [given] = schema.examples ?? [];
  if (given !== undefined) return given;
  if (schema.const !== undefined) return schema.const;
  const [first] = schema.enum ?? [];
  if (first !== undefined) return first;
  const [either] = schema.anyOf ?? [];
  if (either !== undefined) return exampleOf(either);
  switch (schema.type) {
    case "object":
      return exampleOfObject(schema.properties ?? {});
    case "array": {
      const item = schema.items && exampleOf(schema.items);
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

function exampleOfObject(properties: Readonly<Record<string, Schema>>): object {
  const members = Object.entries(properties).map(([name, schema]) => [name, exampleOf(schema)] as const);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}
