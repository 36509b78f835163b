import { randomBytes } from "node:crypto";
import { KEY_BYTES } from "../vault/key.ts";
import type { Kept } from "../vault/secret-store.ts";
import { openSecretStore, type SecretStore, type SecretStoreOptions } from "../vault/sync-secret-store.ts";

/** The keys of personal data, each under a ref, and gone for good once deleted. */
export interface KeyStore extends Pick<SecretStore, "remove" | "bury" | "change" | "revision">, Disposable {
  /** `gone`: it was here and was deleted for ever. */
  get(ref: string): Uint8Array | "gone" | undefined;
  /** As {@link get} for many at once, those of them that are or were here. */
  getAll(refs: readonly string[]): ReadonlyMap<string, Uint8Array | "gone">;
  /** All keys whose refs begin so. */
  under(prefix: string): readonly (readonly [string, Uint8Array])[];
  /** All refs that begin so, in order; also of keys that are gone. */
  refs(prefix: string): readonly string[];
  /** Keeps a key under a ref that has none. */
  put(ref: string, key: Uint8Array): void;
}

/** A key and what names it in a ciphertext. */
export interface NamedKey {
  readonly ref: string;
  readonly key: Uint8Array;
}

/** Throws what the secret store throws. */
export function openKeyStore(options: SecretStoreOptions): KeyStore {
  const {
    get: kept,
    getAll: keptOf,
    names,
    put,
    remove,
    bury,
    change,
    revision,
    [Symbol.dispose]: dispose,
  } = openSecretStore(options);
  const keyOf = (found: Kept | "gone"): Uint8Array | "gone" =>
    found === "gone" ? found : Buffer.from(found.value, "base64");
  const get = (ref: string): Uint8Array | "gone" | undefined => {
    const found = kept(ref);
    return found && keyOf(found);
  };
  return {
    get,
    getAll: (refs) => new Map([...keptOf(refs)].map(([ref, found]) => [ref, keyOf(found)])),
    refs: names,
    under: (prefix) =>
      names(prefix).flatMap((ref): [string, Uint8Array][] => {
        const key = get(ref);
        return key === undefined || key === "gone" ? [] : [[ref, key]];
      }),
    put: (ref, key) => void put(ref, Buffer.from(key).toString("base64"), 0),
    remove,
    bury,
    change,
    revision,
    [Symbol.dispose]: dispose,
  };
}

/** A key of its own. */
export function newKey(): Uint8Array {
  return randomBytes(KEY_BYTES);
}
