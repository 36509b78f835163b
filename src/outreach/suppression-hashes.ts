import { createHmac } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";

/**
 * Keyed hashes (HMAC-SHA-256, base64url) of a person's id and handle, as far as known. A suppression keeps them, so that
 * it still holds when everything else about the person was erased; without the key, the lasting one of that purpose, they
 * tell nothing.
 */
export function createSuppressionHashes(key: Uint8Array): (who: Recipient) => readonly string[] {
  // An id and a handle of the same characters are two people.
  const mark = (kind: "id" | "handle", value: string): string =>
    createHmac("sha256", key).update(`${kind}\n${value}`, "utf8").digest("base64url");
  return ({ id, username }) => [
    ...(id === undefined ? [] : [mark("id", id)]),
    ...(username === undefined ? [] : [mark("handle", username.toLowerCase())]),
  ];
}
