import { open, encrypt } from "../vault/encrypt.ts";
import { ServiceError } from "../platform/service-error.ts";

/** In base64, as it stands in an event. */
export function encryptText(key: Uint8Array, text: string, context: string): string {
  return encrypt(key, text, context).toString("base64");
}

/** `reference` names the key in the error. Throws a ServiceError (damaged). */
export function openText(key: Uint8Array, encrypted: string, context: string, reference: string): string {
  const text = open(key, Buffer.from(encrypted, "base64"), context);
  if (text === undefined) {
    throw new ServiceError(
      "damaged",
      `personal data encrypted with the key ${reference} is damaged, or was encrypted for another event`,
    );
  }
  return text;
}
