import { hash, randomBytes } from "node:crypto";
import { KEY_BYTES } from "../vault/derive-keys.ts";
import type { SecretStore, StoredSecrets } from "../vault/encrypted-secrets.ts";
import { open, encrypt } from "../vault/encrypt.ts";
import { ServiceError } from "../platform/service-error.ts";

/** `gone`: the key existed and was deleted for ever. */
export type FoundKey = Uint8Array | "gone";

/** Reads the keys of personal data, each under a ref. */
export type StoredKeys = ReturnType<typeof storedIn>;

export type KeyChanges = ReturnType<typeof changesIn>;

/** Its methods throw what the secret store throws. */
export type KeyStore = ReturnType<typeof keysIn>;

/** The root of the tree that a ref belongs to, and its place in the tree. */
export function splitRef(ref: string): readonly [root: string, place: string] {
  const [root = "", place = ""] = ref.split("/", 2);
  return [root, place];
}

export function classifyRef(ref: string): "click" | "person" | "day" {
  if (ref.startsWith("c")) return "click";
  return ref.startsWith("p") ? "person" : "day";
}

/** A key, and its name in ciphertexts. */
export interface NamedKey {
  readonly ref: string;
  readonly key: Uint8Array;
}

/** The keys in a secret store, which the caller closes. */
export function keysIn(secrets: SecretStore) {
  const { gone, revision } = secrets;
  return {
    ...storedIn(secrets),
    gone,
    revision,
    /** Does all of `work` or nothing of it, durably; no other change runs meanwhile. `work` may use only `keys`. */
    change: <Result>(work: (keys: KeyChanges) => Promise<Result>): Promise<Result> =>
      secrets.change((within) => work(changesIn(within))),
  };
}

function changesIn(secrets: StoredSecrets) {
  const { remove, bury } = secrets;
  const putAll = (keys: Iterable<readonly [ref: string, key: Uint8Array]>): Promise<void> =>
    secrets.addAll([...keys].map(([ref, key]) => [ref, Buffer.from(key).toString("base64")]));
  return {
    ...storedIn(secrets),
    /** Stores a key under a ref that has none. */
    put: (ref: string, key: Uint8Array): Promise<void> => putAll([[ref, key]]),
    putAll,
    /** Deletes a key; its ref may get another one. */
    remove,
    /** Deletes the key of a ref for ever; the ref never gets another one. */
    bury,
  };
}

function storedIn({ getAll: getSecrets, names }: Pick<StoredSecrets, "getAll" | "names">) {
  const getAll = async (refs: readonly string[]): Promise<ReadonlyMap<string, FoundKey>> => {
    const found = await getSecrets(refs);
    return new Map([...found].map(([ref, kept]) => [ref, kept === "gone" ? kept : Buffer.from(kept.value, "base64")]));
  };
  return {
    /** Returns the keys of the given refs that exist or existed. */
    getAll,
    /** The same for all refs with that prefix. */
    under: async (prefix: string) => getAll(await names(prefix)),
    /** All refs with that prefix, in order, including those of keys that are gone. */
    refs: names,
  };
}

export function newKey(): Uint8Array {
  return randomBytes(KEY_BYTES);
}

/** The first digits of a hash, which disclose nothing about the key. */
export function hashDigits(label: string, key: Uint8Array, digits: number): string {
  return hash("sha256", Buffer.concat([Buffer.from(label), key])).slice(0, digits);
}

const CHECK_DIGITS = 8;

/** Distinguishes a recipient's key from the one that they had before the keys were restored from an older copy. */
export function formatCheck(key: Uint8Array): string {
  return hashDigits("check", key, CHECK_DIGITS);
}

/** Encrypts a text as base64, the form it has in an event. */
export function encryptText(key: Uint8Array, text: string, context: string): string {
  return encrypt(key, text, context).toString("base64");
}

/** Throws a ServiceError (damaged), in which `reference` names the key. */
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
