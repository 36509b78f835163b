import { hash, randomBytes } from "node:crypto";
import { KEY_BYTES } from "../vault/derive-keys.ts";
import type { SecretStore, StoredSecrets } from "../vault/secret-store.ts";
import { open, encrypt } from "../vault/encrypt.ts";
import { ServiceError } from "../platform/service-error.ts";

/** A key of personal data in the key store. `gone`: the key existed and was deleted for ever. */
export type FoundKey = Uint8Array | "gone";

/** Reads the keys of personal data, each stored under a ref, its name in ciphertexts. */
export type StoredKeys = ReturnType<typeof storedIn>;

export type KeyChanges = ReturnType<typeof changesIn>;

/** Store of the keys of personal data. Its methods throw what the secret store below it throws. */
export type KeyStore = ReturnType<typeof keysIn>;

/** Splits the ref (name) of a click's key into the root of its key tree, and its place in the tree. */
export function splitRef(ref: string): readonly [root: string, place: string] {
  const [root = "", place = ""] = ref.split("/", 2);
  return [root, place];
}

export function classifyRef(ref: string): "click" | "person" | "day" {
  if (ref.startsWith("c")) return "click";
  return ref.startsWith("p") ? "person" : "day";
}

/** A key of personal data, and the ref by which ciphertexts name it. */
export interface NamedKey {
  readonly ref: string;
  readonly key: Uint8Array;
}

/** Returns the key store within a secret store, which the caller closes. */
export function keysIn(secrets: SecretStore) {
  const { gone, revision } = secrets;
  return {
    ...storedIn(secrets.getAll, secrets.names),
    gone,
    revision,
    /**
     * Runs `work` as one durable change of keys: all of it or nothing, and no other change meanwhile. `work` may use
     * only its argument `keys`.
     */
    change: <Result>(work: (keys: KeyChanges) => Promise<Result>): Promise<Result> =>
      secrets.change((within) => work(changesIn(within))),
  };
}

function changesIn(secrets: StoredSecrets) {
  const { remove, bury } = secrets;
  const putAll = (keys: Iterable<readonly [ref: string, key: Uint8Array]>): Promise<void> =>
    secrets.addAll([...keys].map(([ref, key]) => [ref, Buffer.from(key).toString("base64")]));
  return {
    ...storedIn(secrets.getAll, secrets.names),
    /** Stores a key under a ref (a key's name) that has no key yet. */
    put: (ref: string, key: Uint8Array): Promise<void> => putAll([[ref, key]]),
    putAll,
    /** Deletes a key; its ref (name) may get another key. */
    remove,
    /** Deletes the key of a ref (a key's name) for ever; the ref never gets another key. */
    bury,
  };
}

function storedIn(getSecrets: StoredSecrets["getAll"], names: StoredSecrets["names"]) {
  const getAll = async (refs: readonly string[]): Promise<ReadonlyMap<string, FoundKey>> => {
    const found = await getSecrets(refs);
    return new Map([...found].map(([ref, kept]) => [ref, kept === "gone" ? kept : Buffer.from(kept.value, "base64")]));
  };
  return {
    /**
     * Returns the keys of these refs (names of keys); `gone` for a deleted key. Refs that never had a key are left out.
     */
    getAll,
    /** Returns the keys of all refs (names of keys) with that prefix. A ref that never had a key is left out. */
    under: async (prefix: string) => getAll(await names(prefix)),
    /** Names of all keys that begin with a prefix, in order, including those of deleted keys. */
    refs: names,
  };
}

export function newKey(): Uint8Array {
  return randomBytes(KEY_BYTES);
}

/** Returns the first digits of a labelled hash of a key, which disclose nothing about the key. */
export function hashDigits(label: string, key: Uint8Array, digits: number): string {
  return hash("sha256", Buffer.concat([Buffer.from(label), key])).slice(0, digits);
}

const CHECK_DIGITS = 8;

/**
 * Returns digits of a key's hash, which ciphertexts hold next to the key's ref. If an older copy of the keys lacks a
 * recipient's key, they get another one under the same ref; the digits tell which of the two made a ciphertext.
 */
export function formatCheck(key: Uint8Array): string {
  return hashDigits("check", key, CHECK_DIGITS);
}

/** Encrypts a text as base64, the form that ciphertexts have in events. */
export function encryptText(key: Uint8Array, text: string, context: string): string {
  return encrypt(key, text, context).toString("base64");
}

/** Decrypts a text of {@link encryptText}. Throws a ServiceError (damaged), in which `reference` names the key. */
export function openText(key: Uint8Array, encrypted: string, context: string, reference: string): string {
  const text = open(key, Buffer.from(encrypted, "base64"), context);
  if (text === undefined) {
    throw new ServiceError(
      "damaged",
      `personal data encrypted with the key ${reference} is damaged, or was encrypted for another event`,
    );
  }
  return text;
}
