import { createHmac } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";

/** The keyed hashes of all names that are given of a person. */
export type HashesOf = (who: Recipient) => readonly string[];

/**
 * Keyed hashes (HMAC-SHA-256, base64url) of a person's id and handle, as far as known. A suppression keeps them, so that
 * it still holds when everything else about the person was erased; without the key, the stable one of that purpose, they
 * say nothing.
 */
export function createSuppressionHashes(key: Uint8Array): HashesOf {
  // An id and a handle of the same characters are two people.
  const hash = (kind: "id" | "handle", value: string): string =>
    createHmac("sha256", key).update(`${kind}\n${value}`, "utf8").digest("base64url");
  return ({ id, username }) => [
    ...(id === undefined ? [] : [hash("id", id)]),
    ...(username === undefined ? [] : [hash("handle", username.toLowerCase())]),
  ];
}
