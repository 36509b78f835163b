import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";

/** Whatever belongs to a log is full of personal data, or a key. */
export const OWNER_ONLY = 0o600;

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
