import { randomBytes } from "node:crypto";
import { encrypt, open } from "./encrypt.ts";
import { damaged, KeyMismatch } from "./error.ts";
import { deriveKey, KEY_BYTES, keyId } from "./key.ts";
import type { WrappedKey } from "./secret-database.ts";

/** What the rows of a store are encrypted with; the master key wraps it. */
export interface DataKey {
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** Names a data key in rows; random, and never used for anything else. */
const ID_BYTES = 8;

export function makeDataKey(): DataKey {
  return { id: randomBytes(ID_BYTES).toString("hex"), bytes: new Uint8Array(randomBytes(KEY_BYTES)) };
}

/** The data key as only this master key opens it. */
export function wrap({ id, bytes }: DataKey, master: Uint8Array): WrappedKey {
  const by = keyId(master);
  const wrapped = encrypt(wrappingKey(master), Buffer.from(bytes).toString("base64"), formatContext(id, by));
  return { id, master: by, wrapped };
}

/**
 * The data key, as `master` opens it; `place` names where it is kept. Throws {@link KeyMismatch}, and a ServiceError
 * (damaged).
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

/** Both labels are authenticated: a row under another label does not open. */
function formatContext(id: string, master: string): string {
  return `${id}|${master}`;
}
