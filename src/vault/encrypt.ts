import { createCipheriv, createDecipheriv, randomFillSync, randomBytes } from "node:crypto";
import { KEY_BYTES, deriveKey, keyId, damaged, KeyMismatch } from "./derive-keys.ts";
import type { WrappedKey } from "./secret-database.ts";

const ALGORITHM = "aes-256-gcm";
/** Length of an initialization vector: 96 random bits, as NIST SP 800-38D recommends for GCM. */
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Size of the pool of random bytes for initialization vectors: fetching twelve bytes each time would cost as much as
 * encrypting.
 */
const POOL_BYTES = 1_024 * IV_BYTES;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/**
 * Buffer that passes each key to native code. Reused, because handing over a new array costs Bun as much as encrypting
 * with it.
 */
const current = Buffer.alloc(KEY_BYTES);

function handed(key: Uint8Array): Buffer {
  // A shorter key would leave a part of the previous key in the buffer.
  if (key.length !== KEY_BYTES) throw new RangeError(`a key has ${KEY_BYTES} bytes, this one ${key.length}`);
  current.set(key);
  return current;
}

function nextIv(): Buffer {
  if (used === POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  used += IV_BYTES;
  return pool.subarray(used - IV_BYTES, used);
}

/** Maximum length of a context, in UTF-16 units, that fits into the reused buffer however it is encoded. */
const CONTEXT_CHARS = 256;
const contexts = Buffer.alloc(3 * CONTEXT_CHARS);

function encodeContext(context: string): Buffer {
  if (context.length > CONTEXT_CHARS) return Buffer.from(context);
  return contexts.subarray(0, contexts.write(context));
}

/**
 * Encrypts `text`, bound to `context`: it opens only under the same key and context. Returns IV, ciphertext and tag.
 */
export function encrypt(key: Uint8Array, text: string, context: string): Buffer {
  const iv = nextIv();
  const cipher = createCipheriv(ALGORITHM, handed(key), iv);
  cipher.setAAD(encodeContext(context));
  const ciphertext = cipher.update(text, "utf8");
  // GCM has no padding, so this returns no bytes.
  cipher.final();
  return Buffer.concat([iv, ciphertext, cipher.getAuthTag()]);
}

/** Decrypts a ciphertext of {@link encrypt}; undefined if the key or the context differs, or a bit was changed. */
export function open(key: Uint8Array, ciphertext: Uint8Array, context: string): string | undefined {
  if (ciphertext.length < IV_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv(ALGORITHM, handed(key), ciphertext.subarray(0, IV_BYTES));
  decipher.setAAD(encodeContext(context));
  decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES));
  try {
    return decipher.update(ciphertext.subarray(IV_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
  } catch {
    return undefined;
  }
}

/** The data key encrypts the secrets in one store. The master key encrypts (wraps) the data key. */
export interface DataKey {
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** Length of a data key's id in a store's rows; the id is random and never used for anything else. */
const ID_BYTES = 8;

export function makeDataKey(): DataKey {
  return { id: randomBytes(ID_BYTES).toString("hex"), bytes: new Uint8Array(randomBytes(KEY_BYTES)) };
}

/** Encrypts a data key so that only this master key opens it. */
export function wrap({ id, bytes }: DataKey, master: Uint8Array): WrappedKey {
  const by = keyId(master);
  const wrapped = encrypt(wrappingKey(master), Buffer.from(bytes).toString("base64"), formatContext(id, by));
  return { id, master: by, wrapped };
}

/**
 * Decrypts the data key with the master key; `place` names the store in errors. Throws {@link KeyMismatch}, and a
 * ServiceError (damaged).
 */
export function unwrap(wrapped: readonly WrappedKey[], master: Uint8Array, place: string): DataKey {
  const by = keyId(master);
  const row = wrapped.find((candidate) => candidate.master === by);
  if (row === undefined) {
    const wrappedWith = wrapped.map((candidate) => candidate.master);
    throw new KeyMismatch(place, by, wrappedWith);
  }
  const text = open(wrappingKey(master), row.wrapped, formatContext(row.id, by));
  if (text === undefined) throw damaged(place, `the data key ${row.id}`);
  return { id: row.id, bytes: new Uint8Array(Buffer.from(text, "base64")) };
}

function wrappingKey(master: Uint8Array): Uint8Array {
  return deriveKey(master, "vault");
}

/**
 * Formats the context of a wrapped data key from the ids of both keys. Both ids are authenticated, so that a row under
 * another id does not open.
 */
function formatContext(id: string, master: string): string {
  return `${id}|${master}`;
}
