import { Type, type TProperties, type TSchema } from "@sinclair/typebox";

/** What schemas of the API are made of. Clients must expect members beside those of an answer's schema. */

export const count = Type.Integer({ minimum: 0 });
export const time = Type.String({ format: "date-time" });
export const id = Type.String({ format: "uuid" });
/** A string such as this one. */
export const text = (example: string) => Type.String({ examples: [example] });
export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const oneOf = <T extends string>(...values: T[]) => Type.Union(values.map((value) => Type.Literal(value)));
/** For request bodies: unknown fields are refused. */
export const closed = { additionalProperties: false };
export const closedObject = <Members extends TProperties>(members: Members) => Type.Object(members, closed);

/** A pattern: more than white space. */
export const TEXT = "\\S";
