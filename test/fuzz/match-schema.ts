import type { Schema } from "./parse-openapi-operations.ts";

const FORMATS: Readonly<Record<string, RegExp>> = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  "date-time": /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/,
  // Pattern of a URL. It accepts more than the service does, which checks a URL with the platform's parser.
  uri: /^ *https?:./i,
  ipv4: /^[0-9.]+$/,
  ipv6: /^[0-9a-f.:]*:[0-9a-f.:]*$/i,
};

const KNOWN: ReadonlySet<string> = new Set([
  "type",
  "const",
  "enum",
  "anyOf",
  "properties",
  "required",
  "patternProperties",
  "additionalProperties",
  "items",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "pattern",
  "format",
  "examples",
  "description",
  "title",
]);

/**
 * Returns where a value does not match a schema. Undeclared members are faults by default, because an answer must be
 * documented completely. Throws at an unknown keyword instead of accepting it.
 */
export function misfits(schema: Schema, value: unknown, at = ""): string[] {
  const unknown = Object.keys(schema).filter((keyword) => !KNOWN.has(keyword));
  if (unknown.length > 0) throw new Error(`no check for ${unknown.join()}`);
  if (schema.anyOf !== undefined) {
    return schema.anyOf.some((each) => misfits(each, value, at).length === 0) ? [] : [`${at} fits none of several`];
  }
  if ("const" in schema && value !== schema.const) return [`${at} is not ${JSON.stringify(schema.const)}`];
  if (schema.enum !== undefined && !schema.enum.includes(value)) return [`${at} is none of ${schema.enum.join()}`];
  if (schema.type !== undefined && !isOfType(schema.type, value)) return [`${at} is no ${schema.type}`];
  if (typeof value === "string") return textMisfits(schema, value, at);
  if (typeof value === "number") {
    if (value > (schema.maximum ?? Infinity)) return [`${at} is above ${schema.maximum}`];
    return value < (schema.minimum ?? -Infinity) ? [`${at} is below ${schema.minimum}`] : [];
  }
  if (Array.isArray(value)) return itemMisfits(schema, value, at);
  return typeof value === "object" && value !== null ? memberMisfits(schema, value, at) : [];
}

function isOfType(type: NonNullable<Schema["type"]>, value: unknown): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

/** Returns where a text does not match its schema. Lengths are in UTF-16 units, as the document says. */
function textMisfits(
  { minLength = 0, maxLength = Infinity, pattern, format }: Schema,
  value: string,
  at: string,
): string[] {
  const faults: string[] = [];
  if (value.length < minLength || value.length > maxLength) faults.push(`${at} has ${value.length} units`);
  if (pattern !== undefined && !new RegExp(pattern).test(value)) faults.push(`${at} does not match ${pattern}`);
  if (format === undefined) return faults;
  const shape = FORMATS[format];
  if (shape === undefined) throw new Error(`no check for the format ${format}`);
  return shape.test(value) ? faults : [...faults, `${at} is no ${format}`];
}

function itemMisfits(
  { items = {}, minItems = 0, maxItems = Infinity }: Schema,
  value: unknown[],
  at: string,
): string[] {
  const faults = value.flatMap((item, index) => misfits(items, item, `${at}/${index}`));
  return value.length < minItems || value.length > maxItems ? [...faults, `${at} has ${value.length} items`] : faults;
}

function memberMisfits(
  { properties = {}, patternProperties = {}, required = [], additionalProperties = false }: Schema,
  value: object,
  at: string,
): string[] {
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}/${name} is missing`);
  const members = Object.entries(value).flatMap(([name, inner]) => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema !== undefined) return misfits(schema, inner, `${at}/${name}`);
    const matching = Object.entries(patternProperties).filter(([pattern]) => new RegExp(pattern).test(name));
    if (matching.length > 0) return matching.flatMap(([, one]) => misfits(one, inner, `${at}/${name}`));
    if (typeof additionalProperties === "object") return misfits(additionalProperties, inner, `${at}/${name}`);
    return additionalProperties ? [] : [`${at}/${name} is not documented`];
  });
  return [...missing, ...members];
}
