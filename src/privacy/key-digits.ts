import { hash } from "node:crypto";

/** The first digits of a hash, which disclose nothing of the key. */
export function digitsOf(label: string, key: Uint8Array, digits: number): string {
  return hash("sha256", Buffer.concat([Buffer.from(label), key])).slice(0, digits);
}

const CHECK_DIGITS = 8;

/** Distinguishes a person's key from the one they had before the keys were restored from an older copy. */
export function checkOf(key: Uint8Array): string {
  return digitsOf("check", key, CHECK_DIGITS);
}
