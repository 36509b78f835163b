import { expect, test } from "bun:test";
import { deriveKey } from "../../src/vault/key.ts";
import { createMarks } from "../../src/outreach/suppression-hashes.ts";

const marks = createMarks(deriveKey(new Uint8Array(32).fill(1), "suppression"));

test("a person has a mark for the id and one for the handle, whatever its case", () => {
  expect(marks({ id: "1001", username: "Ada_Builds" })).toEqual([
    ...marks({ id: "1001" }),
    ...marks({ username: "ada_builds" }),
  ]);
  expect(marks({})).toEqual([]);
});

test("an id and a handle of the same digits, and two keys, make different marks", () => {
  const [ofId] = marks({ id: "1001" });
  expect(marks({ username: "1001" })).not.toContain(ofId);
  expect(createMarks(new Uint8Array(32).fill(2))({ id: "1001" })).not.toContain(ofId);
});

test("a mark shows nothing of the person, and stays the same for ever: suppressions rest on it", () => {
  expect(marks({ id: "1001" })).toEqual(["GIE_3uYpFhlsGc_YOPlz2r9dIaOFgWpa3LOKE3nnpr8"]);
});
