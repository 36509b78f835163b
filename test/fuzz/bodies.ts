import * as fc from "fast-check";
import { misfits } from "./match-schema.ts";
import type { Operation, Schema } from "./parse-openapi-operations.ts";

/** Body of a fuzz request, and its validity by the OpenAPI document. */
export interface Body {
  readonly bytes: Uint8Array;
  /**
   * Expected treatment of the body: the service must accept a `fit` one and refuse an `unfit` one. For an `unknown`
   * one, any documented answer is right.
   */
  readonly verdict: "fit" | "unfit" | "unknown";
}

type Value = Readonly<Record<string, unknown>>;

/**
 * Free text that every pattern for free text accepts. Tests match it against a pattern to find out if the pattern is
 * for free text.
 */
const PROBE = "Probe ä";

function textOf({ minLength = 0, maxLength = 300, pattern, format, examples = [] }: Schema): fc.Arbitrary<string> {
  const known = examples as string[];
  if (format === "uri")
    return fc.oneof(fc.constantFrom(...known), fc.webUrl({ withQueryParameters: true, withFragments: true }));
  if (format === "ipv4") return fc.ipV4();
  if (format === "ipv6") return fc.ipV6();
  if (pattern !== undefined && !new RegExp(pattern).test(PROBE)) {
    // fast-check cannot generate texts for a pattern with a lookaround.
    if (/\(\?[=!<]/.test(pattern)) return fc.constantFrom(...known);
    return fc.oneof(
      ...known.map(fc.constant),
      fc.stringMatching(new RegExp(pattern)).filter(({ length }) => length <= maxLength),
    );
  }
  const any = fc.oneof(
    fc.string({ unit: "grapheme", minLength, maxLength }),
    fc.string({ unit: "binary", minLength, maxLength }),
    // Exactly at the limit.
    fc.constantFrom("a".repeat(maxLength), "ä".repeat(maxLength), "\u{1F44B}".repeat(maxLength >> 1)),
  );
  return any.filter((text) => {
    const fits = text.length >= minLength && text.length <= maxLength && !text.includes("\0");
    return fits && (pattern === undefined || new RegExp(pattern).test(text));
  });
}

/** fast-check generator of values that match a schema. */
export function valid(schema: Schema): fc.Arbitrary<unknown> {
  if ("const" in schema) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valid));
  // Only schemas of objects use `allOf`, so a matching value merges the objects that match its parts.
  if (schema.allOf !== undefined)
    return fc.tuple(...schema.allOf.map(valid)).map((parts) => Object.assign({}, ...parts) as Value);
  if (schema.type === "boolean") return fc.boolean();
  if (schema.type === "string") return textOf(schema);
  if (schema.type === "integer") {
    const { minimum = 0, maximum = minimum + 0x7fffffff } = schema;
    return fc.integer({ min: minimum, max: maximum });
  }
  if (schema.type === "number") return fc.double({ noNaN: true, noDefaultInfinity: true });
  if (schema.type === "null") return fc.constant(null);
  if (schema.type === "array")
    return fc.array(valid(schema.items ?? {}), { minLength: 1, maxLength: Math.min(3, schema.maxItems ?? 3) });
  if (schema.type !== "object") throw new Error(`no bodies of the type ${schema.type}`);
  const { properties = {}, required = [] } = schema;
  const members = Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, valid(inner)]));
  return fc.record(members, { requiredKeys: [...required] });
}

const anyName = fc.oneof(
  fc.constantFrom("__proto__", "constructor", "toString", "dryRun", "dry_rum", "Text", "message ", "id", ""),
  fc.string({ maxLength: 20 }),
);

/** fast-check generator of valid bodies with one member changed. */
function nearlyValid(schema: Schema): fc.Arbitrary<unknown> {
  const names = Object.keys(schema.properties ?? {});
  const name = names.length === 0 ? anyName : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...names) }, anyName);
  const anyValue = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.string({ unit: "binary", maxLength: 50 }),
    fc.constantFrom("", " ", "a".repeat(5_000)),
  );
  const change = fc.record({ name, value: fc.option(anyValue, { nil: undefined, freq: 4 }) });
  return fc.tuple(valid(schema), change).map(([good, { name: changed, value }]) => {
    const members = Object.entries(good as Value).filter(([each]) => each !== changed);
    return Object.fromEntries(value === undefined ? members : [...members, [changed, value]]);
  });
}

const utf8 = new TextEncoder();

/** Returns a valid body as JSON with `end` appended to its first text; in most bodies that is free text. */
function ending(value: Value, end: string): string {
  const name = Object.keys(value).find((each) => typeof value[each] === "string");
  return JSON.stringify(name === undefined ? value : { ...value, [name]: `${String(value[name])}${end}` });
}

const hasText = (value: Value): boolean => Object.values(value).some((inner) => typeof inner === "string");

/** Private-use character that marks where an invalid byte is inserted. */
const MARK = "\ue000";

const withBadByte = (json: string): Uint8Array =>
  Buffer.from(Buffer.from(json).toString("latin1").replaceAll(Buffer.from(MARK).toString("latin1"), "\xff"), "latin1");

/**
 * Functions that break a valid body which has at least one member. The result is invalid JSON, ambiguous JSON, or has a
 * text that cannot be stored.
 */
const breaks: readonly ((json: string, value: Value) => Uint8Array)[] = [
  (json) => utf8.encode(json.slice(0, -1)),
  (json) => utf8.encode(json + json),
  (json) => utf8.encode(`${json.slice(0, -1)},${json.slice(1)}`),
  (json) => utf8.encode(json.replaceAll('"', "'")),
  (json, value) => utf8.encode(hasText(value) ? ending(value, "\0") : json.slice(1)),
  (json, value) => utf8.encode(hasText(value) ? ending(value, "\ud800") : json.slice(1)),
  (json, value) => (hasText(value) ? withBadByte(ending(value, MARK)) : utf8.encode(json.slice(1))),
  (json) => Buffer.from(json, "utf16le"),
  () => utf8.encode("[".repeat(30_000)),
];

function judged(schema: Schema, value: unknown): Body {
  const text = JSON.stringify(value);
  const isUnfit = misfits(schema, JSON.parse(text)).length > 0;
  return { bytes: utf8.encode(text), verdict: isUnfit ? "unfit" : "unknown" };
}

const form = (value: unknown): Body => ({
  bytes: utf8.encode(new URLSearchParams(value as Record<string, string>).toString()),
  verdict: "unknown",
});

/** fast-check generator of bodies for an operation: valid, nearly valid, and arbitrary ones. */
export function bodiesOf({ body }: Operation): fc.Arbitrary<Body | undefined> {
  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.json({ maxDepth: 5 }).map((text) => utf8.encode(text)),
  );
  const noise = anything.map((bytes): Body => ({ bytes, verdict: "unknown" }));
  if (body === undefined) return fc.option(noise, { nil: undefined, freq: 1 });
  const { schema, type } = body;
  if (type !== "application/json") return fc.oneof(valid(schema).map(form), noise, fc.constant(undefined));
  const broken = fc.tuple(valid(schema), fc.constantFrom(...breaks)).map(([value, spoil]): Body => {
    const members = value as Value;
    // Not every function in `breaks` breaks a body without members: a function that replaces quotes changes nothing.
    // Such a body is always broken in the same way instead.
    if (Object.keys(members).length === 0) return { bytes: utf8.encode("{"), verdict: "unfit" };
    return { bytes: spoil(JSON.stringify(members), members), verdict: "unfit" };
  });
  return fc.oneof(
    {
      weight: 4,
      arbitrary: valid(schema).map((value): Body => ({ bytes: utf8.encode(JSON.stringify(value)), verdict: "fit" })),
    },
    { weight: 5, arbitrary: nearlyValid(schema).map((value) => judged(schema, value)) },
    { weight: 2, arbitrary: broken },
    { weight: 1, arbitrary: noise },
    { weight: 1, arbitrary: fc.constant(undefined) },
  );
}
