import { keyError } from "./error.ts";
import { deriveKey, keyId } from "./key.ts";
import { openSecretStore, type Kept, type SecretStore } from "./secret-store.ts";

/** A master key that takes another one's place. */
export interface Rotation {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** Secrets by name, of which each change has a version. */
export interface Secrets {
  get(name: string): Promise<Kept | undefined>;
  /** Stores durably. False when the secret is no longer at `expected` (0: absent): somebody else was first. */
  put(name: string, value: string, expected: number): Promise<boolean>;
  /** False when the secret is no longer at `expected`; nothing is deleted then. */
  delete(name: string, expected: number): Promise<boolean>;
}

/** Where tokens live: encrypted at rest, apart from the log, so that no event ever holds one. */
export interface Vault extends Secrets, Disposable {
  /** False when `name` was claimed before and is still remembered. Times are ms since the epoch. */
  claim(name: string, until: number, now: number): Promise<boolean>;
  isClaimed(name: string, now: number): Promise<boolean>;
  /** A key that stays the same when the master key is exchanged. */
  stableKey(purpose: StableKeyPurpose): Promise<Uint8Array>;
  /**
   * Encrypts everything anew; until {@link Vault.endRotation} both master keys open it, and it knows both. Throws a
   * ServiceError beside a rotation to another key.
   */
  beginRotation(rotation: Rotation): void;
  /** The rotation that was begun and is not ended. */
  rotation(): Rotation | undefined;
  /** From now on only the new master key opens the vault. */
  endRotation(): void;
}

/**
 * What keyed hashes are made with. They stand in the log for ever, so the key stays the same when the master key is
 * exchanged. It is derived from the first master key, so that a lost vault can be made anew until then.
 */
const STABLE = ["suppression", "credentials"] as const;

export type StableKeyPurpose = (typeof STABLE)[number];

/** The secret that holds both master keys while one takes the other's place. */
const ROTATION = "rotation";

/** Opens the vault, or makes it. Throws KeyMismatch and other ServiceErrors; nothing is changed then. */
export function openVault(file: string, master: Uint8Array): Vault {
  const store = openSecretStore({ file, master });
  try {
    keepStableKeys(store, master);
    return vaultIn(store, file);
  } catch (fault) {
    store[Symbol.dispose]();
    throw fault;
  }
}

function keepStableKeys(store: SecretStore, master: Uint8Array): void {
  const missing = STABLE.filter((purpose) => store.get(stable(purpose)) === undefined);
  if (missing.length === 0) return;
  store.change(() => {
    for (const purpose of missing) store.put(stable(purpose), textOf(deriveKey(master, purpose)), 0);
  });
}

function vaultIn(store: SecretStore, file: string): Vault {
  const get = (name: string): Kept | undefined => {
    const kept = store.get(name);
    return kept === "gone" ? undefined : kept;
  };
  const rotation = (): Rotation | undefined => {
    const kept = get(ROTATION);
    if (kept === undefined) return undefined;
    const { from, to } = JSON.parse(kept.value) as { from: string; to: string };
    return { from: bytesOf(from), to: bytesOf(to) };
  };
  return {
    get: async (name) => get(name),
    put: async (name, value, expected) => store.put(name, value, expected),
    delete: async (name, expected) =>
      store.change(() => {
        const isThere = get(name)?.version === expected;
        if (isThere) store.remove(name);
        return isThere;
      }),
    claim: async (name, until, now) => store.claim(name, until, now),
    isClaimed: async (name, now) => store.isClaimed(name, now),
    stableKey: async (purpose) => bytesOf(get(stable(purpose))?.value ?? ""),
    rotation,
    beginRotation: ({ from, to }) =>
      store.change(() => {
        const begun = rotation()?.to;
        if (begun !== undefined && keyId(begun) !== keyId(to)) {
          throw keyError(
            `${file}: a rotation to the key ${keyId(begun)} has not ended: start the service with it first`,
          );
        }
        if (begun !== undefined) return;
        store.rewrap([from, to]);
        store.put(ROTATION, JSON.stringify({ from: textOf(from), to: textOf(to) }), 0);
      }),
    endRotation: () =>
      store.change(() => {
        const ending = rotation();
        if (ending === undefined) return;
        store.revoke(ending.from);
        store.remove(ROTATION);
      }),
    [Symbol.dispose]: store[Symbol.dispose],
  };
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
