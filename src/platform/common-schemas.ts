import { Type, type TProperties, type TSchema } from "@sinclair/typebox";
import { TypeCompiler, type TypeCheck } from "@sinclair/typebox/compiler";

/** What schemas of the API are made of. Clients must expect members beside those of an answer's schema. */

export const count = Type.Integer({ minimum: 0 });
export const time = Type.String({ format: "date-time" });
export const id = Type.String({ format: "uuid" });
/** A string such as this one. */
export const text = (example: string) => Type.String({ examples: [example] });
export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const oneOf = <T extends string>(...values: T[]) => Type.Union(values.map((value) => Type.Literal(value)));
/** A schema under the name of a type, such as `ChannelState`: the API's document and its clients hold it once. */
export const named = <T extends TSchema>(title: string, schema: T): T => ({ ...schema, title });
/** For request bodies: unknown fields are refused. */
export const closed = { additionalProperties: false };
export const closedObject = <Members extends TProperties>(members: Members) => Type.Object(members, closed);

/** A pattern: more than white space. */
export const TEXT = "\\S";

/** The misfits that are listed; a body may have tens of thousands. */
const MISFITS_MAX = 64;

/** The place where a value does not fit its schema, and what the schema wants there. */
export interface Misfit {
  readonly path: string;
  readonly message: string;
}

/**
 * Returns a check that lists where a value does not fit: nowhere if it fits. It never says what the value is: it may be
 * personal or a secret. The schema is compiled at the first check: commands read all schemas, and check few values.
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
  for (const { path, message, errors } of Iterator.from(check.Errors(value)).take(MISFITS_MAX)) {
    // The first schema of a member that may be null says its other form.
    if (!messages.has(path)) messages.set(path, errors[0]?.First()?.message ?? message);
  }
  return [...messages].map(([path, message]) => ({ path, message }));
}
