import { open, seal } from "../vault/encrypt.ts";

/** What was sealed does not open with the key it names: it was damaged, or belongs to another event. */
export class DamagedBox extends Error {
  override readonly name = "DamagedBox";
  constructor(reference: string) {
    super(`personal data sealed with the key ${reference} is damaged, or was sealed for another event`);
  }
}

/** In base64, as it stands in an event. */
export function sealText(key: Uint8Array, text: string, context: string): string {
  return seal(key, text, context).toString("base64");
}

/** `reference` names the key in the error. Throws {@link DamagedBox}. */
export function openText(key: Uint8Array, sealed: string, context: string, reference: string): string {
  const text = open(key, Buffer.from(sealed, "base64"), context);
  if (text === undefined) throw new DamagedBox(reference);
  return text;
}
