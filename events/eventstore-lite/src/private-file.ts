import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Whatever belongs to a log is full of personal data, or a key. */
export const OWNER_ONLY = 0o600;

/** Ends the name of a file that is being written; a crash may leave one. */
export const PARTIAL_SUFFIX = ".partial";

/**
 * Makes an empty file that only its owner can read, and its directory; leaves an existing file alone.
 * SQLite gives its own files (-wal, -shm) the same mode.
 *
 * An existing file is never opened here: closing any descriptor of a file drops every POSIX lock that this
 * process holds on it, SQLite's included (sqlite.org/howtocorrupt.html, 2.2).
 */
export function createPrivateFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  try {
    closeSync(openSync(file, "wx", OWNER_ONLY));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

/** The file appears whole or not at all, durably; of two processes that make it at once, one wins. */
export function makePrivateFile(file: string, content: string | Uint8Array): void {
  const draft = writeDraft(file, content);
  try {
    linkSync(draft, file);
  } catch (error) {
    const isThere = error instanceof Error && "code" in error && error.code === "EEXIST";
    // Some file systems know no links.
    if (!isThere) renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
  syncDirectory(dirname(file));
}

/** The file holds the former text or the new one at any moment, also after a power cut. */
export function replacePrivateFile(file: string, text: string): void {
  renameSync(writeDraft(file, text), file);
  syncDirectory(dirname(file));
}

function writeDraft(file: string, content: string | Uint8Array): string {
  const draft = `${file}.${randomUUID()}${PARTIAL_SUFFIX}`;
  writePrivateFile(draft, content);
  return draft;
}

/** Writes a new file durably; throws where there is one. */
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

/** A name is as durable as its directory. */
function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
