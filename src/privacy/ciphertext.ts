import { open, encrypt } from "../vault/encrypt.ts";

/** What was sealed does not open with the key it names: it was damaged, or belongs to another event. */
export class DamagedCiphertext extends Error {
  override readonly name = "DamagedCiphertext";
  constructor(reference: string) {
    super(`personal data sealed with the key ${reference} is damaged, or was sealed for another event`);
  }
}

/** In base64, as it stands in an event. */
export function encryptText(key: Uint8Array, text: string, context: string): string {
  return encrypt(key, text, context).toString("base64");
}

/** `reference` names the key in the error. Throws {@link DamagedCiphertext}. */
export function openText(key: Uint8Array, encrypted: string, context: string, reference: string): string {
  const text = open(key, Buffer.from(encrypted, "base64"), context);
  if (text === undefined) throw new DamagedCiphertext(reference);
  return text;
}
