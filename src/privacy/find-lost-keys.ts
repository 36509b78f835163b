import { ENCRYPTED_TYPES, type LogStore } from "../../events/event-types-and-codec.ts";
import { ciphertextOf } from "../../events/divide-and-encrypt-personal-data.ts";
import { splitIntoChunks } from "../vault/secret-database.ts";
import { classifyRef, splitRef } from "./key-store.ts";
import type { Keyring } from "./keyring.ts";
import { latestExpiry } from "./delete-erased-and-expired-keys.ts";

/**
 * Returns the refs of lost keys: the log names them, and they neither exist nor were deleted on purpose. `asOf`: time
 * of the key store's copy; keys of days that had expired by then are not lost. `from`: first position searched.
 */
export async function missingKeys(store: LogStore, keyring: Keyring, asOf: number, from = 1) {
  const refs = new Set<string>();
  for await (const { data } of store.readStored({ types: ENCRYPTED_TYPES, from })) {
    const ciphertext = ciphertextOf(data);
    const [keys, , encrypted = ""] = ciphertext?.split(":") ?? [];
    // Skips keys of another key store, because the log records when a key store was lost. Skips empty ciphertexts too,
    // because they belong to erased recipients.
    if (ciphertext === undefined || keys !== keyring.id || encrypted === "") continue;
    refs.add(keyring.refOf(ciphertext));
  }
  const expired = latestExpiry(asOf);
  const [people, days] = [new Set<string>(), new Set<string>()];
  for (const ref of refs) {
    if (classifyRef(ref) === "person") people.add(ref);
    else if (ref.slice(1, 1 + expired.length) >= expired) days.add(splitRef(ref)[0]);
  }
  return [...(await absent(keyring, [...people])), ...(await absentDays(keyring, [...days]))];
}

export function keysMissing(count: number): string {
  return `${count} ${count === 1 ? "key" : "keys"} that the log names are missing, and were not deleted on purpose: what ${
    count === 1 ? "it" : "they"
  } encrypted reads as erased. Put back the newest copy of the key store`;
}

async function absent({ keys }: Keyring, refs: readonly string[]): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const asked of splitIntoChunks(refs)) {
    const found = await keys.getAll(asked);
    missing.push(...asked.filter((ref) => !found.has(ref)));
  }
  return missing;
}

/**
 * Returns those of the refs (names of keys) that stand for a day without any key. A day with some forgotten addresses
 * still has keys for its other addresses.
 */
async function absentDays({ keys }: Keyring, refs: readonly string[]): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const ref of refs) if ((await keys.refs(ref)).length === 0) missing.push(ref);
  return missing;
}
