// These tests call the code directly.
import { expect, test } from "bun:test";
import { deriveKey } from "../../src/vault/derive-keys.ts";
import { createSuppressionHashes } from "../../src/privacy/suppression-hashes.ts";

const hashes = createSuppressionHashes(deriveKey(new Uint8Array(32).fill(1), "suppression"));

test("a recipient has one hash for the id and one for the handle in any case", () => {
  expect(hashes({ id: "1001", username: "Ada_Builds" })).toEqual([
    ...hashes({ id: "1001" }),
    ...hashes({ username: "ada_builds" }),
  ]);
  expect(hashes({})).toEqual([]);
});

test("the hashes follow a recipient whose names change", () => {
  const recipient: { id?: string; username?: string } = { username: "ada" };
  expect(hashes(recipient)).toEqual(hashes({ username: "ada" }));
  recipient.username = "ada_builds";
  expect(hashes(recipient)).toEqual(hashes({ username: "ada_builds" }));
  recipient.id = "1001";
  expect(hashes(recipient)).toEqual(hashes({ id: "1001", username: "ada_builds" }));
});

test("hashes differ between an id and a handle of the same digits, and between keys", () => {
  const [ofId] = hashes({ id: "1001" });
  expect(hashes({ username: "1001" })).not.toContain(ofId);
  expect(createSuppressionHashes(new Uint8Array(32).fill(2))({ id: "1001" })).not.toContain(ofId);
});

test("the hash of an id never changes", () => {
  expect(hashes({ id: "1001" })).toEqual(["GIE_3uYpFhlsGc_YOPlz2r9dIaOFgWpa3LOKE3nnpr8"]);
});
