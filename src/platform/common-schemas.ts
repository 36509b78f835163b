import { Type, type TProperties, type TSchema } from "@sinclair/typebox";
import { TypeCompiler, type TypeCheck } from "@sinclair/typebox/compiler";
import { EITHER } from "./format-numbers-and-lists.ts";

/** The building blocks of the API's schemas. Clients must expect members in addition to those of an answer's schema. */

export const count = Type.Integer({ minimum: 0 });
export const time = Type.String({ format: "date-time" });
export const id = Type.String({ format: "uuid" });
/** Creates the schema of a string, with an example. */
export const text = (example: string) => Type.String({ examples: [example] });
export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const oneOf = <T extends string>(...values: T[]) => Type.Union(values.map((value) => Type.Literal(value)));
/**
 * Gives a schema the name of a type, such as `ChannelState`, so that the API's document and its clients hold it once.
 */
export const named = <T extends TSchema>(title: string, schema: T): T => ({ ...schema, title });
/** Option of schemas of request bodies by which they refuse unknown fields. */
export const closed = { additionalProperties: false };
export const closedObject = <Members extends TProperties>(members: Members) => Type.Object(members, closed);

/** Pattern of a text that is more than white space. */
export const TEXT = "\\S";

/** Pattern of a campaign's name. */
export const CAMPAIGN_NAME = "^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$";

/** Words for patterns that people meet in forms. */
const PATTERN_WORDS: ReadonlyMap<unknown, string> = new Map([
  [TEXT, "a text that is not blank"],
  [`^$|${TEXT}`, "a text that is not blank"],
  [CAMPAIGN_NAME, "1 to 40 lower-case letters, digits and hyphens"],
]);

/**
 * Maximum number of places at which a value does not match its schema that are listed; a request body may have tens of
 * thousands.
 */
const MISFITS_MAX = 64;

/** A place where a value does not fit its schema, and what the schema wants there. */
export interface Misfit {
  readonly path: string;
  readonly message: string;
}

/**
 * Returns a function that lists the places where a value does not fit the schema. It never repeats the value, which may
 * be a secret. The schema is compiled at its first use, because commands load all schemas and use few.
 */
export function createCheck(schema: TSchema): (value: unknown) => readonly Misfit[] {
  let compiled: TypeCheck<TSchema> | undefined;
  return (value) => {
    compiled ??= TypeCompiler.Compile(schema);
    return compiled.Check(value) ? [] : listMisfits(compiled, value);
  };
}

function listMisfits(check: TypeCheck<TSchema>, value: unknown): readonly Misfit[] {
  const messages = new Map<string, string>();
  for (const { path, message, schema, errors } of Iterator.from(check.Errors(value)).take(MISFITS_MAX)) {
    // A member that may also be null fails both as null and as its other type. The message about the other type is more
    // useful.
    if (!messages.has(path)) messages.set(path, describeSchema(schema) ?? errors[0]?.First()?.message ?? message);
  }
  return [...messages].map(([path, message]) => ({ path, message }));
}

/**
 * Returns a description of the expected value if the schema allows only certain words, or has a pattern that
 * PATTERN_WORDS describes. Undefined for all other schemas.
 */
function describeSchema({ anyOf = [], pattern }: TSchema): string | undefined {
  const words = (anyOf as readonly TSchema[])
    .map((one) => one["const"] as unknown)
    .filter((one) => typeof one === "string");
  if (words.length > 0 && words.length === anyOf.length) return `Expected ${EITHER.format(words)}`;
  const known = PATTERN_WORDS.get(pattern);
  return known && `Expected ${known}`;
}
