import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parseAnswer } from "../json-answer.ts";
import { SocialError } from "../network.ts";

export const ID = Type.String({ pattern: "^[0-9]{1,19}$" });
export const USERNAME = Type.String({ pattern: "^[A-Za-z0-9_]{1,15}$" });

/** Whether X could have made the id: ids are put into paths, so nothing else may pass. */
export const isXId = (text: string): boolean => Value.Check(ID, text);

export const isXUsername = (text: string): boolean => Value.Check(USERNAME, text);

/** What X says of a page. */
export const META = Type.Object({
  result_count: Type.Optional(Type.Integer()),
  /** X names no length that is too long; the answer as a whole is bounded. */
  next_token: Type.Optional(Type.String()),
});

/** Where the list goes on, as a member of a page. */
export function parseNext(meta: Static<typeof META> | undefined): { readonly next?: string } {
  return meta?.next_token === undefined || meta.next_token === "" ? {} : { next: meta.next_token };
}

export function required<T extends TSchema>(schema: T, text: string): Static<T> {
  const body = parseAnswer(schema, text);
  if (body === undefined) throw unreadable();
  return body;
}

export function unreadable(): SocialError {
  return new SocialError("unavailable", "X answered 200 with a body that cannot be read");
}
