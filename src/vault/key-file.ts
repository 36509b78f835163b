import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { KEY_BYTES, parseKey } from "./key.ts";

/**
 * Reads the key file, or makes it, and its folder, at the first start. The file holds 64 hex digits and is readable by
 * its owner only.
 */
export function loadKeyFile(file: string): Uint8Array {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true });
    makeKeyFile(file, randomBytes(KEY_BYTES));
  }
  return parseKey(readFileSync(file, "utf8").trim(), file);
}

/** The file appears whole or not at all; of two processes that make it at once, one wins. */
export function makeKeyFile(file: string, key: Uint8Array): void {
  const draft = writeDraft(file, key);
  try {
    linkSync(draft, file);
  } catch (fault) {
    const isThere = fault instanceof Error && "code" in fault && fault.code === "EEXIST";
    // Some file systems know no links.
    if (!isThere) renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
  syncDirectory(file);
}

/** Writes a key to be kept elsewhere; an existing file is never overwritten. */
export function writeKeyFile(file: string, key: Uint8Array): void {
  writeKey(openSync(file, "wx", 0o600), key);
  syncDirectory(file);
}

/** The file holds the former key or the new one at any moment, also after a power cut. */
export function replaceKeyFile(file: string, key: Uint8Array): void {
  renameSync(writeDraft(file, key), file);
  syncDirectory(file);
}

function writeDraft(file: string, key: Uint8Array): string {
  const draft = `${file}.${randomBytes(8).toString("hex")}`;
  writeKey(openSync(draft, "wx", 0o600), key);
  return draft;
}

function writeKey(handle: number, key: Uint8Array): void {
  try {
    writeSync(handle, `${Buffer.from(key).toString("hex")}\n`);
    // A key lost with a power cut would make everything encrypted with it unreadable.
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** A name is as durable as its directory. */
function syncDirectory(file: string): void {
  const handle = openSync(dirname(file), "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
