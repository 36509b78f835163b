import type { EventStore } from "eventstore-lite";
import { ENCRYPTED_TYPES, type Event, type EventType } from "../../events/catalog.ts";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import type { StorePlace } from "../log/store-place.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { MasterKeyPlace } from "../vault/master-key.ts";

/** The log holds what was encrypted with keys that are not there. */
export function keysLost(place: string, isThere: boolean): ServiceError {
  return new ServiceError(
    "configuration",
    `${place} ${isThere ? "does not belong to this log" : "is gone"}: without its keys nobody can read the personal ` +
      "data in the log, nor erase any of it. Put them back; or, to go on without that data, run " +
      "reachlog serve --accept-lost-keys",
  );
}

/**
 * What a log needs and is gone is not made anew: empty keys would look as if everybody had been erased, and an empty
 * vault lacks the keys of the hashes that suppressed people are known by. Throws a ServiceError (configuration).
 */
export async function refuseLostKeys(
  log: StorePlace,
  { keys, vault }: Pick<MasterKeyPlace, "keys" | "vault">,
): Promise<void> {
  if (!(await log.isThere())) return;
  const [hasKeys, hasVault] = await Promise.all([keys.isThere(), vault.isThere()]);
  if (hasKeys && hasVault) return;
  await using store = await log.open();
  if (!hasKeys && (await newestKeys(store)) !== undefined) throw keysLost(keys.name, false);
  if (hasVault) return;
  // Before the first rotation the master key gives them back.
  for await (const { position } of store.readStored({ types: ["KeyRotated"], backwards: true, limit: 1 })) {
    throw new ServiceError(
      "configuration",
      `${vault.name} is gone, and the master key was exchanged at position ${position}: without it, people who were ` +
        "suppressed and erased would not be known again. Put it back; or, to go on without, run " +
        "reachlog serve --accept-lost-keys",
    );
  }
}

/** Of these some have nothing personal, and no ciphertext: nobody knows how many in a row. */
const MAY_BE_OPEN: readonly EventType[] = ["LinkClicked", "SourceRead", "AuthenticationsFailed"];

/** Those that may have none are looked through so far; whoever encrypts them alone has others of them that are. */
const LOOKED_AT_MAX = 1_000;

/** The id of the keys that the newest event was encrypted with; undefined: nothing was encrypted yet. */
export async function newestKeys(store: EventStore<Event>): Promise<string | undefined> {
  const always = ENCRYPTED_TYPES.filter((type) => !MAY_BE_OPEN.includes(type));
  const found = [
    await newestIn(store, ["PersonalKeysLost", ...always], 1),
    await newestIn(store, MAY_BE_OPEN, LOOKED_AT_MAX),
  ];
  return found.flatMap((one) => one ?? []).sort((a, b) => b.position - a.position)[0]?.keys;
}

interface Encrypted {
  readonly position: number;
  readonly keys: string | undefined;
}

async function newestIn(
  store: EventStore<Event>,
  types: readonly EventType[],
  limit: number,
): Promise<Encrypted | undefined> {
  for await (const { type, data, position } of store.readStored({ types, backwards: true, limit })) {
    if (type === "PersonalKeysLost") return { position, keys: (data as { replaced_by: string }).replaced_by };
    const ciphertext = ciphertextOf(data);
    if (ciphertext !== undefined) return { position, keys: ciphertext.split(":", 1)[0] };
  }
  return undefined;
}
