import { createCipheriv, createDecipheriv, randomFillSync } from "node:crypto";
import { KEY_BYTES } from "../account/key.ts";

const ALGORITHM = "aes-256-gcm";
/** 96 bits, random, as NIST SP 800-38D recommends for GCM. */
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Random bytes are had many at a time: asking for twelve costs as much as sealing. */
const POOL_BYTES = 1_024 * IV_BYTES;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** Handing a new array to native code costs Bun as much as sealing with it; this one is always the same. */
const current = Buffer.alloc(KEY_BYTES);

function handed(key: Uint8Array): Buffer {
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

/** What was sealed does not open with the key it names: it was damaged, or belongs to another event. */
export class DamagedBox extends Error {
  override readonly name = "DamagedBox";
  constructor(reference: string) {
    super(`personal data sealed with the key ${reference} is damaged, or was sealed for another event`);
  }
}

/** IV, ciphertext and tag in base64. */
export function sealText(key: Uint8Array, text: string, context: string): string {
  const iv = nextIv();
  const cipher = createCipheriv(ALGORITHM, handed(key), iv);
  cipher.setAAD(Buffer.from(context));
  return Buffer.concat([iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64");
}

/** `reference` names the key in the error. Throws {@link DamagedBox}. */
export function openText(key: Uint8Array, sealed: string, context: string, reference: string): string {
  const bytes = Buffer.from(sealed, "base64");
  if (bytes.length < IV_BYTES + TAG_BYTES) throw new DamagedBox(reference);
  const decipher = createDecipheriv(ALGORITHM, handed(key), bytes.subarray(0, IV_BYTES));
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
  } catch {
    throw new DamagedBox(reference);
  }
}
