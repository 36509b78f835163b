import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Mode of every file of a log, which only its owner may read, because it holds personal data or a key. */
export const OWNER_ONLY = 0o600;

/** Suffix of a file that is still being written; a crash may leave such a file. */
export const PARTIAL_SUFFIX = ".partial";

/**
 * Creates an empty file that only its owner can read, and its directory; SQLite gives -wal and -shm the same mode.
 * Never opens an existing file: closing it would drop this process's POSIX locks on it (sqlite.org/howtocorrupt.html,
 * 2.2).
 */
export function createPrivateFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  try {
    closeSync(openSync(file, "wx", OWNER_ONLY));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

/** Creates a file durably; it appears whole or not at all. If two processes create it at once, one wins. */
export function makePrivateFile(file: string, content: string | Uint8Array): void {
  const draft = writeDraft(file, content);
  try {
    linkSync(draft, file);
  } catch (error) {
    const isThere = error instanceof Error && "code" in error && error.code === "EEXIST";
    // Some file systems know no hard links, so the draft is renamed instead.
    if (!isThere) renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
  syncDirectory(dirname(file));
}

/** Replaces a file durably; at any moment it holds the former text or the new one, also after a power cut. */
export function replacePrivateFile(file: string, text: string): void {
  renameSync(writeDraft(file, text), file);
  syncDirectory(dirname(file));
}

function writeDraft(file: string, content: string | Uint8Array): string {
  const draft = `${file}.${randomUUID()}${PARTIAL_SUFFIX}`;
  writePrivateFile(draft, content);
  return draft;
}

/** Writes a new file durably; throws if it exists. */
export function writePrivateFile(file: string, content: string | Uint8Array): void {
  const descriptor = openSync(file, "wx", OWNER_ONLY);
  try {
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  syncDirectory(dirname(file));
}

/**
 * Makes the names of new files in a directory durable: after a power cut a file is found only if its directory was
 * synced.
 */
function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
