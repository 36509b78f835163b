import { createHmac } from "node:crypto";
import type { Secret } from "../platform/secret.ts";

/** A keyed hash of a credential: it tells another one from this, and nothing else. `key` is the lasting one. */
export function createCredentialHash(key: Uint8Array): (credential: Secret) => string {
  return (credential) => createHmac("sha256", key).update(credential.reveal(), "utf8").digest("base64url");
}
