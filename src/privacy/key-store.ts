import { hash, randomBytes } from "node:crypto";
import { KEY_BYTES } from "../vault/key.ts";
import type { SecretStore, StoredSecrets } from "../vault/secret-store.ts";
import { open, encrypt } from "../vault/encrypt.ts";
import { ServiceError } from "../platform/service-error.ts";

/** `gone`: it was here and was deleted for ever. */
export type FoundKey = Uint8Array | "gone";

/** What is asked of the keys of personal data, each under a ref. */
export interface StoredKeys {
  /** Those of the refs that are or were here. */
  getAll(refs: readonly string[]): Promise<ReadonlyMap<string, FoundKey>>;
  /** The same of all whose refs begin so. */
  under(prefix: string): Promise<ReadonlyMap<string, FoundKey>>;
  /** All refs that begin so, in order; also of keys that are gone. */
  refs(prefix: string): Promise<readonly string[]>;
}

/** What is asked and changed at once. */
export interface KeyChanges extends StoredKeys {
  /** Keeps a key under a ref that has none. */
  put(ref: string, key: Uint8Array): Promise<void>;
  putAll(keys: Iterable<readonly [ref: string, key: Uint8Array]>): Promise<void>;
  /** Deletes a key whose ref may get another one. */
  remove(ref: string): Promise<void>;
  /** Deletes a key, or what could come under that ref: it is gone for ever. */
  bury(ref: string): Promise<void>;
}

/** Its methods throw what the secret store throws. */
export interface KeyStore extends StoredKeys {
  /** Refs that begin so whose keys are gone. */
  gone(prefix: string): Promise<readonly string[]>;
  /**
   * Does all of `work` or nothing of it, durably; no other change runs meanwhile. Inside of it only `keys` are asked.
   */
  change<Result>(work: (keys: KeyChanges) => Promise<Result>): Promise<Result>;
  /** Another number once another process has changed something. */
  revision(): Promise<number>;
}

/** Whose key a ref names. */
export function classifyRef(ref: string): "click" | "person" | "day" {
  if (ref.startsWith("c")) return "click";
  return ref.startsWith("p") ? "person" : "day";
}

/** A key and what names it in a ciphertext. */
export interface NamedKey {
  readonly ref: string;
  readonly key: Uint8Array;
}

/** The keys among those secrets, whose opener closes them. */
export function keysIn(secrets: SecretStore): KeyStore {
  return {
    ...storedIn(secrets),
    gone: secrets.gone,
    revision: secrets.revision,
    change: (work) =>
      secrets.change((within) =>
        work({
          ...storedIn(within),
          put: (ref, key) => within.addAll([[ref, textOf(key)]]),
          putAll: (keys) => within.addAll([...keys].map(([ref, key]) => [ref, textOf(key)])),
          remove: within.remove,
          bury: within.bury,
        }),
      ),
  };
}

function textOf(key: Uint8Array): string {
  return Buffer.from(key).toString("base64");
}

function storedIn(secrets: StoredSecrets): StoredKeys {
  const getAll: StoredKeys["getAll"] = async (refs) => {
    const found = await secrets.getAll(refs);
    return new Map([...found].map(([ref, kept]) => [ref, kept === "gone" ? kept : Buffer.from(kept.value, "base64")]));
  };
  return {
    getAll,
    under: async (prefix) => getAll(await secrets.names(prefix)),
    refs: secrets.names,
  };
}

/** A key of its own. */
export function newKey(): Uint8Array {
  return randomBytes(KEY_BYTES);
}

/** The first digits of a hash, which disclose nothing of the key. */
export function hashDigits(label: string, key: Uint8Array, digits: number): string {
  return hash("sha256", Buffer.concat([Buffer.from(label), key])).slice(0, digits);
}

const CHECK_DIGITS = 8;

/** Distinguishes a person's key from the one they had before the keys were restored from an older copy. */
export function formatCheck(key: Uint8Array): string {
  return hashDigits("check", key, CHECK_DIGITS);
}

/** In base64, as it stands in an event. */
export function encryptText(key: Uint8Array, text: string, context: string): string {
  return encrypt(key, text, context).toString("base64");
}

/** `reference` names the key in the error. Throws a ServiceError (damaged). */
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
