// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { deriveKey } from "../../src/vault/derive-keys.ts";
import { open, encrypt } from "../../src/vault/encrypt.ts";

const key = fc.uint8Array({ minLength: 32, maxLength: 32 });
const text = fc.string({ unit: "binary" });

test("any encrypted text opens with the same key and context", () => {
  fc.assert(
    fc.property(key, text, text, (master, value, context) => {
      expect(open(master, encrypt(master, value, context), context)).toBe(value);
    }),
  );
});

test("a ciphertext with any flipped bit does not open", () => {
  fc.assert(
    fc.property(key, text, fc.nat(), (master, value, position) => {
      const ciphertext = encrypt(master, value, "context");
      const bit = position % (ciphertext.length * 8);
      ciphertext[bit >> 3]! ^= 1 << (bit & 7);
      expect(open(master, ciphertext, "context")).toBeUndefined();
    }),
  );
});

test("a ciphertext does not open if truncated, with another key or in another context", () => {
  fc.assert(
    fc.property(key, key, text, text, fc.nat(), (master, other, value, context, cut) => {
      const ciphertext = encrypt(master, value, context);
      expect(open(master, ciphertext.subarray(0, cut % ciphertext.length), context)).toBeUndefined();
      expect(open(master, ciphertext, `${context}.`)).toBeUndefined();
      fc.pre(!Buffer.from(master).equals(other));
      expect(open(other, ciphertext, context)).toBeUndefined();
    }),
  );
});

test.each(["x", "ü", "茶", "🍵"])(
  "a ciphertext is bound to every character of its context, at any length (%s)",
  (character) => {
    const master = new Uint8Array(32).fill(7);
    for (const length of [1, 85, 127, 128, 255, 256, 257, 400, 1_000]) {
      const context = character.repeat(length);
      const ciphertext = encrypt(master, "tea", `${context}1`);
      expect(open(master, ciphertext, `${context}1`)).toBe("tea");
      expect(open(master, ciphertext, `${context}2`)).toBeUndefined();
      expect(open(master, ciphertext, context)).toBeUndefined();
    }
  },
);

test("encrypting the same text twice gives different bytes", () => {
  const master = new Uint8Array(32);
  expect(encrypt(master, "a", "b")).not.toEqual(encrypt(master, "a", "b"));
});

test("each purpose has a different derived key, which is the same each time", () => {
  const master = new Uint8Array(32).fill(7);
  expect(deriveKey(master, "vault")).toEqual(deriveKey(master, "vault"));
  expect(deriveKey(master, "vault")).not.toEqual(deriveKey(master, "console-session"));
  expect(deriveKey(master, "vault")).not.toEqual(master);
});
