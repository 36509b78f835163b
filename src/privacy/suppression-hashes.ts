import { createHmac } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";

/** Returns the keyed hashes of a recipient's given names (id and handle). */
export type HashesOf = (recipient: Recipient) => readonly string[];

/**
 * Returns a function that hashes a recipient's id and handle with a key (HMAC-SHA-256, base64url). A suppression keeps
 * the hashes, so that it survives the recipient's erasure. Without the key they reveal nothing.
 */
export function createSuppressionHashes(key: Uint8Array): HashesOf {
  // The kind is hashed too, because an id and a handle of the same characters are two recipients.
  const hash = (kind: "id" | "handle", value: string): string =>
    createHmac("sha256", key).update(`${kind}\n${value}`, "utf8").digest("base64url");
  return ({ id, username }) => [
    ...(id === undefined ? [] : [hash("id", id)]),
    ...(username === undefined ? [] : [hash("handle", username.toLowerCase())]),
  ];
}
