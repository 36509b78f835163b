// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { cleanValue, fieldName } from "../../src/template/normalize-field.ts";

const text = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.string({ unit: fc.constantFrom("a", "B", "é", "e\u0301", "_", "-", " ", "\t", "\u200E", "7"), maxLength: 8 }),
);

test("a value that needs no cleaning is the same as one that does", () => {
  // The test cleans each value twice: as it is, and with a left-to-right mark before it, which cleaning must remove.
  fc.assert(
    fc.property(text, (value) => expect(cleanValue(value)).toBe(cleanValue(`\u200E${value}`))),
    { numRuns: 2_000 },
  );
  expect(cleanValue(" \t ")).toBeUndefined();
  expect(cleanValue("a  b ")).toBe("a  b");
});

test("a name that is normal already is the same as one with spaces around it", () => {
  fc.assert(
    fc.property(text, (name) => expect(fieldName(name)).toBe(fieldName(` ${name}`))),
    { numRuns: 2_000 },
  );
  expect(fieldName("First  Name")).toBe("first name");
});
