// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { findContact } from "../../projections/contact-identity.ts";
import { contacts } from "../../projections/contacts.ts";
import { decodeState, encodePieces, encodeState } from "../../projections/encode-state.ts";
import { given } from "../harness/in-process/number-and-fold-events.ts";
import { countCases } from "../harness/case-count.ts";

const state = fc.letrec((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 0, -1.5, "", "$map"),
    fc.array(tie("node"), { maxLength: 3 }),
    fc.array(fc.tuple(fc.string(), tie("node")), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.dictionary(fc.constantFrom("a", "b", "constructor"), tie("node")),
    fc.dictionary(fc.constantFrom("$map", "toString"), fc.string()),
  ),
})).node;

test("a state of JSON values and Maps is restored equal, with Maps in order", () => {
  fc.assert(
    fc.property(state, (value) => {
      const text = encodeState(value);
      const back = decodeState(text);
      expect(back).toEqual(value);
      expect(encodeState(back)).toBe(text);
    }),
    { numRuns: countCases(1_000) },
  );
});

/** Generates Maps: some are so large that their entries are encoded on separate lines, and some contain other Maps. */
const largeMap = fc.tuple(fc.nat(700), fc.boolean()).map(([size, isDeep]) => {
  const value = (at: number): unknown => (isDeep && at % 100 === 0 ? new Map([[at, { at }]]) : { at });
  return new Map(Array.from({ length: size }, (_, at) => [`key ${at}`, value(at)]));
});
const largeState = fc.record({ one: largeMap, list: fc.array(largeMap), map: fc.dictionary(fc.string(), largeMap) });

test("a state with large Maps is restored equal, with Maps in order", () => {
  fc.assert(
    fc.property(largeState, ({ map, ...members }) => {
      const value = { map: new Map(Object.entries(map)), ...members };
      const text = encodeState(value);
      const back = decodeState(text);
      expect(back).toEqual(value);
      expect(encodeState(back)).toBe(text);
      expect([...encodePieces(value)].join("")).toBe(text);
    }),
    { numRuns: 100 },
  );
});

test("a text with missing or extra lines is refused", () => {
  const lines = encodeState({ people: new Map(Array.from({ length: 600 }, (_, at) => [at, at])) }).split("\n");
  expect(lines).toHaveLength(4);
  expect(() => decodeState(lines.slice(0, 3).join("\n"))).toThrow("a state has more lines");
  expect(() => decodeState([...lines, lines[3]].join("\n"))).toThrow("a state has fewer lines");
});

test("a recipient's field can be named like the marker of a Map", () => {
  const recipient = { username: "ann" };
  const people = given(contacts, [
    { type: "RecipientAdded", data: { recipient, basis: "none", fields: { $map: "x" }, source: "list" } },
  ]);
  const back = decodeState(encodeState(people)) as typeof people;
  expect(findContact(back, recipient)?.fields).toEqual({ $map: "x" });
});
