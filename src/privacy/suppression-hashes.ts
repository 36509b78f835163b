import { createHmac } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";

/** Returns the keyed hashes of a recipient's given names (id and handle). */
export type HashesOf = (recipient: Recipient) => readonly string[];

/** Names of a recipient and their hashes. */
interface Hashed {
  readonly id: string | undefined;
  readonly username: string | undefined;
  readonly hashes: readonly string[];
}

/**
 * Returns a function that hashes a recipient's id and handle with a key (HMAC-SHA-256, base64url). A suppression keeps
 * the hashes, so that it survives the recipient's erasure. Without the key they reveal nothing.
 */
export function createSuppressionHashes(key: Uint8Array): HashesOf {
  // The kind is hashed too, because an id and a handle of the same characters are two recipients.
  const hash = (kind: "id" | "handle", value: string): string =>
    createHmac("sha256", key).update(`${kind}\n${value}`, "utf8").digest("base64url");
  // Caches the hashes of each contact, because a page that counts recipients needs them for all contacts at every
  // request. The names are cached too, to notice when the names of a contact change.
  const known = new WeakMap<Recipient, Hashed>();
  return (recipient) => {
    const { id, username } = recipient;
    const earlier = known.get(recipient);
    if (earlier !== undefined && earlier.id === id && earlier.username === username) return earlier.hashes;
    const hashes = [
      ...(id === undefined ? [] : [hash("id", id)]),
      ...(username === undefined ? [] : [hash("handle", username.toLowerCase())]),
    ];
    known.set(recipient, { id, username, hashes });
    return hashes;
  };
}
