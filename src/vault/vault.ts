import { deriveKey, keyId, keyError } from "./key.ts";
import type { SecretDatabase, SecretPlace } from "./secret-database.ts";
import { openSecretStore, type BoundSecrets, type Kept, type SecretStore, type StoredSecrets } from "./secret-store.ts";

/** A master key that takes another one's place. */
export interface Rotation {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** Secrets by name, of which each change has a version. */
export interface Secrets {
  get(name: string): Promise<Kept | undefined>;
  /** Stores durably. False when the secret is no longer at `expected` (0: absent): another writer was first. */
  put(name: string, value: string, expected: number): Promise<boolean>;
  /** False when the secret is no longer at `expected`; nothing is deleted then. */
  delete(name: string, expected: number): Promise<boolean>;
}

/** Where tokens live: encrypted at rest, apart from the log, so that no event ever holds one. */
export interface Vault extends Secrets, BoundSecrets, Pick<SecretDatabase, "note" | "keepNote">, AsyncDisposable {
  /** False when `name` was claimed before and is still remembered. Times are ms since the epoch. */
  claim(name: string, until: number, now: number): Promise<boolean>;
  isClaimed(name: string, now: number): Promise<boolean>;
  /** A key that stays the same when the master key is exchanged. */
  stableKey(purpose: StableKeyPurpose): Promise<Uint8Array>;
  /**
   * Re-encrypts everything; until {@link Vault.endRotation} both master keys open it, and it knows both. Throws a
   * ServiceError while a rotation to another key is in progress.
   */
  beginRotation(rotation: Rotation): Promise<void>;
  /** The rotation that was begun and is not ended. */
  rotation(): Promise<Rotation | undefined>;
  /** From now on only the new master key opens the vault. */
  endRotation(): Promise<void>;
}

/**
 * What keyed hashes are made with, and what signs a shared log's checkpoints. Both are kept for ever, so the key stays
 * the same when the master key is exchanged. It is derived from the first master key, so that a lost vault can be made
 * again until the first exchange.
 */
const STABLE = ["suppression", "credentials", "checkpoints"] as const;

export type StableKeyPurpose = (typeof STABLE)[number];

/** The secret that holds both master keys while one takes the other's place. */
const ROTATION = "rotation";

/** Opens the vault, or makes it. Throws KeyMismatch and other ServiceErrors; nothing is changed then. */
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
  await store.addAll(STABLE.map((purpose) => [stable(purpose), textOf(deriveKey(master, purpose))]));
}

function vaultIn(store: SecretStore, name: string): Vault {
  return {
    get: (secret) => presentIn(store, secret),
    put: store.put,
    delete: (secret, expected) =>
      store.change(async (secrets) => {
        const isThere = (await presentIn(secrets, secret))?.version === expected;
        if (isThere) await secrets.remove(secret);
        return isThere;
      }),
    claim: store.claim,
    isClaimed: store.isClaimed,
    bind: store.bind,
    taken: store.taken,
    note: store.note,
    keepNote: store.keepNote,
    stableKey: async (purpose) => bytesOf((await presentIn(store, stable(purpose)))?.value ?? ""),
    rotation: () => rotationIn(store),
    beginRotation: ({ from, to }) =>
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
        await secrets.put(ROTATION, JSON.stringify({ from: textOf(from), to: textOf(to) }), 0);
      }),
    endRotation: () =>
      store.change(async (secrets) => {
        const ending = await rotationIn(secrets);
        if (ending === undefined) return;
        await secrets.revoke(ending.from);
        await secrets.remove(ROTATION);
      }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

async function presentIn(secrets: StoredSecrets, name: string): Promise<Kept | undefined> {
  const kept = await secrets.get(name);
  return kept === "gone" ? undefined : kept;
}

async function rotationIn(secrets: StoredSecrets): Promise<Rotation | undefined> {
  const kept = await presentIn(secrets, ROTATION);
  if (kept === undefined) return undefined;
  const { from, to } = JSON.parse(kept.value) as { from: string; to: string };
  return { from: bytesOf(from), to: bytesOf(to) };
}

function stable(purpose: StableKeyPurpose): string {
  return `stable/${purpose}`;
}

function textOf(key: Uint8Array): string {
  return Buffer.from(key).toString("base64");
}

function bytesOf(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "base64"));
}
