import { createCipheriv, createDecipheriv, randomFillSync } from "node:crypto";
import { KEY_BYTES } from "./key.ts";

const ALGORITHM = "aes-256-gcm";
/** 96 bits, random, as NIST SP 800-38D recommends for GCM. */
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Random bytes are had many at a time: asking for twelve costs as much as encrypting. */
const POOL_BYTES = 1_024 * IV_BYTES;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** Handing a new array to native code costs Bun as much as encrypting with it; this one is always the same. */
const current = Buffer.alloc(KEY_BYTES);

function handed(key: Uint8Array): Buffer {
  // A shorter one would leave a part of the last key in its place.
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

/** A text of so many UTF-16 units fits into the room for contexts however it is encoded. */
const CONTEXT_CHARS = 256;
const contexts = Buffer.alloc(3 * CONTEXT_CHARS);

function encodeContext(context: string): Buffer {
  if (context.length > CONTEXT_CHARS) return Buffer.from(context);
  return contexts.subarray(0, contexts.write(context));
}

/** Encrypts `text`, bound to `context`: it opens only under the same key and context. IV, ciphertext and tag. */
export function encrypt(key: Uint8Array, text: string, context: string): Buffer {
  const iv = nextIv();
  const cipher = createCipheriv(ALGORITHM, handed(key), iv);
  cipher.setAAD(encodeContext(context));
  const ciphertext = cipher.update(text, "utf8");
  // The mode has no padding: this adds nothing.
  cipher.final();
  return Buffer.concat([iv, ciphertext, cipher.getAuthTag()]);
}

/** Undefined when the key or the context is another one, or a bit was changed. */
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
