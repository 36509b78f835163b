import { hkdfSync, randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { decodeKey } from "../config/key.ts";

/** AES-256 and everything derived from it. */
export const KEY_BYTES = 32;

/** The master key cannot be used: absent, unreadable or not a key. */
export class KeyError extends Error {
  override readonly name = "KeyError";
}

/** Reads the key file, or makes it at the first start. The file holds 64 hex digits and is readable by its owner only. */
export function loadKeyFile(file: string): Uint8Array {
  if (!existsSync(file)) makeKeyFile(file);
  return parseKey(readFileSync(file, "utf8").trim(), file);
}

/** The file appears whole or not at all; of two processes that make it at once, one wins. */
function makeKeyFile(file: string): void {
  const draft = `${file}.${randomBytes(8).toString("hex")}`;
  const handle = openSync(draft, "wx", 0o600);
  try {
    writeSync(handle, `${randomBytes(KEY_BYTES).toString("hex")}\n`);
    // A key lost with a power cut would make everything sealed with it unreadable.
    fsyncSync(handle);
    linkSync(draft, file);
  } catch (fault) {
    const isThere = fault instanceof Error && "code" in fault && fault.code === "EEXIST";
    // Some file systems know no links.
    if (!isThere) renameSync(draft, file);
  } finally {
    closeSync(handle);
    rmSync(draft, { force: true });
  }
}

/** A key given as text; `source` names it in errors. */
export function parseKey(text: string, source: string): Uint8Array {
  const key = decodeKey(text);
  if (key === undefined) throw new KeyError(`${source} holds no key: 64 hex digits or base64 of 32 bytes`);
  return key;
}

/** A key for one purpose, so that no two uses share one (HKDF-SHA-256, RFC 5869). */
export function deriveKey(master: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", master, "", `reachlog/${purpose}`, KEY_BYTES));
}
