import type { SigningKey } from "eventstore-lite";
import { encrypt, open } from "../../vault/encrypt.ts";
import { damaged } from "../../vault/error.ts";
import { deriveKey } from "../../vault/key.ts";

/** What the key that signs heads is encrypted with in a backup: beside the log it lies in the clear, for its owner alone. */
const PURPOSE = "backup";

/** `log`: the id of the log whose heads it signs. */
export function encryptSigningKey({ privateKey }: SigningKey, master: Uint8Array, log: string): Buffer {
  return encrypt(deriveKey(master, PURPOSE), privateKey.export({ type: "pkcs8", format: "pem" }), log);
}

/** The key in PEM. Throws a ServiceError (damaged); `place` names the file. */
export function openSigningKey(encrypted: Uint8Array, master: Uint8Array, log: string, place: string): string {
  const pem = open(deriveKey(master, PURPOSE), encrypted, log);
  if (pem === undefined) throw damaged(place, "the key that signs heads");
  return pem;
}
