// On no harness.
import { expect, test } from "bun:test";
import { deriveKey } from "../../src/vault/derive-keys.ts";
import { createSuppressionHashes } from "../../src/recipients/suppress.ts";

const hashes = createSuppressionHashes(deriveKey(new Uint8Array(32).fill(1), "suppression"));

test("a person has a mark for the id and one for the handle, whatever its case", () => {
  expect(hashes({ id: "1001", username: "Ada_Builds" })).toEqual([
    ...hashes({ id: "1001" }),
    ...hashes({ username: "ada_builds" }),
  ]);
  expect(hashes({})).toEqual([]);
});

test("an id and a handle of the same digits, and two keys, make different marks", () => {
  const [ofId] = hashes({ id: "1001" });
  expect(hashes({ username: "1001" })).not.toContain(ofId);
  expect(createSuppressionHashes(new Uint8Array(32).fill(2))({ id: "1001" })).not.toContain(ofId);
});

test("a mark shows nothing of the person, and stays the same for ever: suppressions rest on it", () => {
  expect(hashes({ id: "1001" })).toEqual(["GIE_3uYpFhlsGc_YOPlz2r9dIaOFgWpa3LOKE3nnpr8"]);
});
