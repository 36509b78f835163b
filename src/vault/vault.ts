import { deriveKey, keyId, keyError } from "./derive-keys.ts";
import type { SecretPlace } from "./secret-database.ts";
import { openSecretStore, type Kept, type SecretStore, type StoredSecrets } from "./secret-store.ts";

export interface Rotation {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** Stores tokens, encrypted at rest and separate from the log, so that no event ever holds one. */
export type Vault = ReturnType<typeof vaultIn>;

/** Secrets in the vault by name, with a version that each change increases. */
export interface Secrets {
  readonly get: Vault["get"];
  readonly put: Vault["put"];
  readonly delete: Vault["delete"];
}

/**
 * Purposes of keys that do not change when the master key is rotated: they make keyed hashes and sign a shared log's
 * checkpoints. They are derived from the first master key, so until the first rotation a lost vault can be rebuilt.
 */
const STABLE = ["suppression", "credentials", "checkpoints"] as const;

export type StableKeyPurpose = (typeof STABLE)[number];

/** Name of the secret that holds both master keys while a rotation replaces one by the other. */
const ROTATION = "rotation";

/**
 * Opens the vault, or creates it. Throws KeyMismatch if the master key is another one, and changes nothing. If creating
 * it fails halfway, the next opening adds the missing keys.
 */
export async function openVault(place: SecretPlace, master: Uint8Array): Promise<Vault> {
  const store = await openSecretStore({ place, master });
  try {
    await keepStableKeys(store, master);
    return vaultIn(store, place.name);
  } catch (fault) {
    await store[Symbol.asyncDispose]();
    throw fault;
  }
}

async function keepStableKeys(store: SecretStore, master: Uint8Array): Promise<void> {
  const kept = await store.getAll(STABLE.map(stable));
  if (kept.size === STABLE.length) return;
  await store.addAll(STABLE.map((purpose) => [stable(purpose), deriveKey(master, purpose).toBase64()]));
}

function vaultIn(store: SecretStore, name: string) {
  const { put, claim, isClaimed, bind, taken, note, keepNote } = store;
  return {
    put,
    claim,
    isClaimed,
    bind,
    taken,
    note,
    keepNote,
    get: (secret: string) => presentIn(store, secret),
    /** Deletes a secret of the vault. False, and nothing is deleted, if its version is no longer `expected`. */
    delete: (secret: string, expected: number): Promise<boolean> =>
      store.change(async (secrets) => {
        const isThere = (await presentIn(secrets, secret))?.version === expected;
        if (isThere) await secrets.remove(secret);
        return isThere;
      }),
    /** Returns a key that stays the same when the master key is exchanged. */
    stableKey: async (purpose: StableKeyPurpose): Promise<Uint8Array> =>
      Uint8Array.fromBase64((await presentIn(store, stable(purpose)))?.value ?? ""),
    /** Returns the rotation of the master key that was begun and has not ended, if there is one. */
    rotation: () => rotationIn(store),
    /**
     * Begins to exchange the master key: until `endRotation`, the old and the new one both open the vault, which also
     * stores both. Throws a ServiceError while a rotation to another key is in progress.
     */
    beginRotation: ({ from, to }: Rotation): Promise<void> =>
      store.change(async (secrets) => {
        const begun = (await rotationIn(secrets))?.to;
        if (begun !== undefined && keyId(begun) !== keyId(to)) {
          throw keyError(
            `${name}: a rotation to the key ${keyId(begun)} has not ended: start the service with it first, or end it ` +
              "(reachlog key rotate --end)",
          );
        }
        if (begun !== undefined) return;
        await secrets.rewrap([from, to]);
        await secrets.put(ROTATION, JSON.stringify({ from: from.toBase64(), to: to.toBase64() }), 0);
      }),
    /** Ends a rotation: from now on only the new master key opens the vault. */
    endRotation: (): Promise<void> =>
      store.change(async (secrets) => {
        const ending = await rotationIn(secrets);
        if (ending === undefined) return;
        await secrets.revoke(ending.from);
        await secrets.remove(ROTATION);
      }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

/** Read access to secrets, in a store or within a change of it. */
interface SecretReader {
  readonly get: StoredSecrets["get"];
}

async function presentIn(secrets: SecretReader, name: string): Promise<Kept | undefined> {
  const kept = await secrets.get(name);
  return kept === "gone" ? undefined : kept;
}

async function rotationIn(secrets: SecretReader): Promise<Rotation | undefined> {
  const kept = await presentIn(secrets, ROTATION);
  if (kept === undefined) return undefined;
  const { from, to } = JSON.parse(kept.value) as { from: string; to: string };
  return { from: Uint8Array.fromBase64(from), to: Uint8Array.fromBase64(to) };
}

function stable(purpose: StableKeyPurpose): string {
  return `stable/${purpose}`;
}
