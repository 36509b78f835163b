// On the memory harness.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { contacts, findContact } from "../../projections/contacts.ts";
import { decodeState, encodeState } from "../../projections/snapshot.ts";
import { given } from "../harness/memory/events.ts";

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

test("a state of JSON values and Maps comes back equal, with its Maps in their order", () => {
  fc.assert(
    fc.property(state, (value) => {
      const text = encodeState(value);
      const back = decodeState(text);
      expect(back).toEqual(value);
      expect(encodeState(back)).toBe(text);
    }),
    { numRuns: 1_000 },
  );
});

test("a column of a recipients file may be called like the mark of a Map", () => {
  const recipient = { username: "ann" };
  const people = given(contacts, [
    { type: "RecipientAdded", data: { recipient, basis: "none", fields: { $map: "x" }, source: "list" } },
  ]);
  const back = decodeState(encodeState(people)) as typeof people;
  expect(findContact(back, recipient)?.fields).toEqual({ $map: "x" });
});
