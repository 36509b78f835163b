import { randomBytes } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { encrypt, open } from "./encrypt.ts";
import { damaged, KeyMismatch } from "./error.ts";
import { deriveKey, KEY_BYTES, keyId } from "./key.ts";

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

/** Lets a master key open the data key. */
export function wrap(database: DatabaseSync, { id, bytes }: DataKey, master: Uint8Array): void {
  const by = keyId(master);
  const wrapped = encrypt(wrappingKey(master), Buffer.from(bytes).toString("base64"), contextOf(id, by));
  database.prepare("INSERT INTO data_keys (id, master, wrapped) VALUES (?, ?, ?)").run(id, by, wrapped);
}

/** The data key, as `master` opens it. Throws {@link KeyMismatch}, and a ServiceError (damaged). */
export function unwrap(database: DatabaseSync, master: Uint8Array, file: string): DataKey {
  const by = keyId(master);
  const rows = database.prepare("SELECT id, master, wrapped FROM data_keys").all() as unknown as WrappedKey[];
  const row = rows.find((candidate) => candidate.master === by);
  if (row === undefined) {
    const wrappedWith = rows.map((candidate) => candidate.master);
    throw new KeyMismatch(file, by, wrappedWith);
  }
  const text = open(wrappingKey(master), row.wrapped, contextOf(row.id, by));
  if (text === undefined) throw damaged(file, `the data key ${row.id}`);
  return { id: row.id, bytes: new Uint8Array(Buffer.from(text, "base64")) };
}

interface WrappedKey {
  readonly id: string;
  readonly master: string;
  readonly wrapped: Uint8Array;
}

function wrappingKey(master: Uint8Array): Uint8Array {
  return deriveKey(master, "vault");
}

/** Both labels are authenticated: a row under another label does not open. */
function contextOf(id: string, master: string): string {
  return `${id}|${master}`;
}
