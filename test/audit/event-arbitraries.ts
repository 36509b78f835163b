import fc from "fast-check";
import type { NewEvent } from "eventstore-lite";

// Characters that a name cannot contain. With the u flag the class only matches lone surrogates.
// oxlint-disable-next-line no-control-regex
const NOT_IN_NAMES = /[\u0000-\u001f\u007f-\u009f\ud800-\udfff]/gu;

/**
 * fast-check generator of names of streams, types and events, including ones that a spreadsheet or a parser could
 * misinterpret.
 */
export const name: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom("", "=", "+", "-", "@", "'", "''", '"', ",", ";", "\ufeff", "{", "1e5", "\u2028", "reachlog."),
    fc.string({ unit: "binary", maxLength: 12 }),
  )
  .map(([first, rest]) => (first + rest).replace(NOT_IN_NAMES, "") || "x");

/** fast-check generator of JSON values whose texts contain NUL, lone surrogates and noncharacters. */
const json = fc.jsonValue({ maxDepth: 3, stringUnit: "binary" });

const meta = fc.oneof(
  fc.record({ schema: fc.oneof(fc.nat(), fc.constant(2 ** 40)), traceparent: fc.constantFrom("00-ab-cd-01", "é") }),
  json,
);

/** fast-check generator of any event that another or an older codec may have written. */
export const newEvent: fc.Arbitrary<NewEvent> = fc.record({ id: name, type: name, data: json, meta });
