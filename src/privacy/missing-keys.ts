import type { EventStore } from "eventstore-lite";
import { ENCRYPTED_TYPES, type Event } from "../../events/catalog.ts";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import { latestExpiry } from "./apply-erasures.ts";
import { kindOf } from "./key-store.ts";
import type { Keyring } from "./keyring.ts";

/** Refs asked for at once. */
const ASKED_MAX = 1_000;

/**
 * Refs of keys that the log names, and that are neither there nor were deleted on purpose, as those of an older copy of the
 * keys are. `asOf`: when the keys were copied; a day that could have expired by then is no fault. Empty: the keys fit the log.
 */
export async function missingKeys(
  store: EventStore<Event>,
  keyring: Keyring,
  asOf: number,
): Promise<readonly string[]> {
  const refs = new Set<string>();
  for await (const { data } of store.readStored({ types: ENCRYPTED_TYPES })) {
    const ciphertext = ciphertextOf(data);
    const [keys, , encrypted = ""] = ciphertext?.split(":") ?? [];
    // Of keys that were lost before, the log says so itself; that of the erased is empty.
    if (ciphertext === undefined || keys !== keyring.id || encrypted === "") continue;
    refs.add(keyring.refOf(ciphertext));
  }
  const expired = latestExpiry(asOf);
  const [people, days] = [new Set<string>(), new Set<string>()];
  for (const ref of refs) {
    if (kindOf(ref) === "person") people.add(ref);
    else if (ref.slice(1, 1 + expired.length) >= expired) days.add(ref.split("/", 1)[0] ?? ref);
  }
  return [...(await absent(keyring, [...people])), ...(await absentDays(keyring, [...days]))];
}

/** A sentence for the operator. */
export function keysMissing(count: number): string {
  return `${count} ${count === 1 ? "key" : "keys"} that the log names are missing, and were not deleted on purpose: what ${
    count === 1 ? "it" : "they"
  } encrypted reads as erased. Put back the newest copy of the key store`;
}

async function absent({ keys }: Keyring, refs: readonly string[]): Promise<readonly string[]> {
  const missing: string[] = [];
  for (let at = 0; at < refs.length; at += ASKED_MAX) {
    const asked = refs.slice(at, at + ASKED_MAX);
    const found = await keys.getAll(asked);
    missing.push(...asked.filter((ref) => !found.has(ref)));
  }
  return missing;
}

/** Of a day whose addresses were forgotten in part, the keys beside theirs are left. */
async function absentDays({ keys }: Keyring, refs: readonly string[]): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const ref of refs) if ((await keys.refs(ref)).length === 0) missing.push(ref);
  return missing;
}
