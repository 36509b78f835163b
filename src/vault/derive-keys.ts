import { hkdfSync } from "node:crypto";
import { decodeKey } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";

/** Length of a key for AES-256, and of all keys derived from the master key. */
export const KEY_BYTES = 32;

/** Parses a master key given as text; `source` names the setting or file in errors. */
export function parseKey(text: string, source: string): Uint8Array {
  const key = decodeKey(text);
  if (key === undefined)
    throw new ServiceError("configuration", `${source} holds no key: 64 hex digits or base64 of 32 bytes`);
  return key;
}

/** Derives a key for one purpose from the master key, so that no two purposes share one (HKDF-SHA-256, RFC 5869). */
export function deriveKey(master: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", master, "", `reachlog/${purpose}`, KEY_BYTES));
}

/** Digits of a master key's id: enough to distinguish the few keys of a service. */
const ID_DIGITS = 16;

/** The id of a master key in rows and messages, which discloses nothing about the key. */
export function keyId(master: Uint8Array): string {
  return Buffer.from(deriveKey(master, "key-id")).toString("hex").slice(0, ID_DIGITS);
}

/**
 * Error that the data key at `place` is wrapped with another master key than the given one. Ids distinguish master
 * keys, and disclose nothing else about them.
 */
export class KeyMismatch extends ServiceError<"configuration"> {
  override readonly name = "KeyMismatch";
  constructor(place: string, given: string, wrappedWith: readonly string[]) {
    const wanted = wrappedWith.length === 0 ? "another key" : `the key ${wrappedWith.join(" or ")}`;
    const remedy = "give the right one (REACHLOG_KEY or the key file)";
    super("configuration", `${place} was encrypted with ${wanted}, not with ${given}: ${remedy}`);
  }
}

/**
 * Creates the error that the key is right, but `what` does not open with it, because the ciphertext was altered or
 * replaced by an older one.
 */
export function damaged(place: string, what: string): ServiceError {
  const remedy = "it was altered; restore it from a backup";
  return new ServiceError("damaged", `${place}: ${what} does not open with the right key: ${remedy}`);
}

/** Creates the error that the master key cannot be used at all, or not for the existing data. */
export function keyError(sentence: string): ServiceError {
  return new ServiceError("configuration", sentence);
}
