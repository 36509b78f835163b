import type { Encoded, NewEvent } from "eventstore-lite";
import { ciphertextOf } from "../../events/divide-and-encrypt-personal-data.ts";
import { type Owner, encodeRequest } from "../../events/declare-personal-members.ts";
import type { Keyring } from "../../src/privacy/keyring.ts";
import writerTransform from "../../src/privacy/encrypt-on-writer.ts";

/** Returns an event in the form that the writer thread stores, with its personal data encrypted. */
export function finished({ transformInput, ...event }: Encoded): NewEvent {
  const data = JSON.stringify(event.data);
  return {
    ...event,
    data: JSON.parse(transformInput === undefined ? data : writerTransform(data, transformInput)) as unknown,
  };
}

/** Encrypts a text with the owner's key, as the log does for a separate append. Returns the ciphertext. */
export async function encrypted(keyring: Keyring, owner: Owner, text: string, context = "here"): Promise<string> {
  const [{ prefix, key } = { prefix: "", key: undefined }] = await keyring.keysFor([owner]);
  if (key === undefined) return prefix;
  return ciphertextOf(JSON.parse(writerTransform("{}", encodeRequest({ prefix, key, context, text })))) ?? "";
}

/** Decrypts each ciphertext; undefined if its key is gone. */
export async function openedBy(
  keyring: Keyring,
  ciphertexts: readonly (string | undefined)[],
  context = "here",
): Promise<readonly (string | undefined)[]> {
  return keyring.open(ciphertexts.map((ciphertext = "") => ({ ciphertext, context })));
}
