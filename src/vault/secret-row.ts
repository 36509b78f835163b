import type { DataKey } from "./data-key.ts";
import { open, encrypt } from "./encrypt.ts";

/** A secret with its name and the version that it has under it. */
export interface NamedSecret {
  readonly name: string;
  readonly version: number;
  readonly value: string;
}

/** Seals a row of the vault. */
export function encryptRow(key: DataKey, { name, version, value }: NamedSecret): Uint8Array {
  return encrypt(key.bytes, value, contextOf(key, name, version));
}

/** Undefined when the row is not the one that was sealed under this name, version and key. */
export function decryptRow(key: DataKey, name: string, version: number, sealed: Uint8Array): string | undefined {
  return open(key.bytes, sealed, contextOf(key, name, version));
}

/** All labels of a row are part of what is sealed, so neither another's row nor an older one of the same name opens. */
function contextOf({ id }: DataKey, name: string, version: number): string {
  return JSON.stringify(["secret", name, version, id]);
}
