import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

/** The body as `schema` describes it, undefined for anything else: what a network answers is not trusted. */
export function parseAnswer<T extends TSchema>(schema: T, text: string): Static<T> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Value.Check(schema, value) ? value : undefined;
  } catch {
    return undefined;
  }
}
