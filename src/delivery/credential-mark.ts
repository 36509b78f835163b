import { createHmac } from "node:crypto";
import { deriveKey } from "../account/key.ts";
import type { Secret } from "../secret.ts";

/** A keyed hash of a credential: it tells another one from this, and nothing else. */
export function createCredentialMark(masterKey: Uint8Array): (credential: Secret) => string {
  const key = deriveKey(masterKey, "credentials");
  return (credential) => createHmac("sha256", key).update(credential.reveal(), "utf8").digest("base64url");
}
