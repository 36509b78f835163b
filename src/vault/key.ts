import { hkdfSync } from "node:crypto";
import { decodeKey } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";

/** AES-256 and everything derived from it. */
export const KEY_BYTES = 32;

/** A key given as text; `source` names it in errors. */
export function parseKey(text: string, source: string): Uint8Array {
  const key = decodeKey(text);
  if (key === undefined)
    throw new ServiceError("configuration", `${source} holds no key: 64 hex digits or base64 of 32 bytes`);
  return key;
}

/** A key for one purpose, so that no two uses share one (HKDF-SHA-256, RFC 5869). */
export function deriveKey(master: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", master, "", `reachlog/${purpose}`, KEY_BYTES));
}

/** Digits of a key's id: enough to tell the few keys of a service apart. */
const ID_DIGITS = 16;

/** Names a master key, in rows and messages, which discloses nothing of it. */
export function keyId(master: Uint8Array): string {
  return Buffer.from(deriveKey(master, "key-id")).toString("hex").slice(0, ID_DIGITS);
}
