import type { Fault } from "../append/writer-messages.ts";

// Primary result codes, https://sqlite.org/rescode.html; the extended code holds them in its low byte.
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_NOTADB = 26;

/** SQLite's error codes by message. Deno 2.9 reports no code if `exec` or the opening of a file fails. */
const CODE_BY_MESSAGE: ReadonlyMap<string, number> = new Map([
  ["database is locked", SQLITE_BUSY],
  ["database disk image is malformed", SQLITE_CORRUPT],
  ["database or disk is full", SQLITE_FULL],
  ["file is not a database", SQLITE_NOTADB],
]);

/**
 * Returns the extended result code of an error that node:sqlite threw; the primary code if the runtime reports no
 * extended one, and 0 for any other error.
 */
function sqliteCode(error: unknown): number {
  if (!(error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR")) return 0;
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode;
  return CODE_BY_MESSAGE.get(error.message) ?? 0;
}

export function faultOf(error: unknown): Fault {
  const primary = sqliteCode(error) & 0xff;
  if (primary === SQLITE_FULL) return "full";
  return primary === SQLITE_BUSY ? "busy" : "fatal";
}

export function isBusy(error: unknown): boolean {
  return faultOf(error) === "busy";
}

export function isNotADatabase(error: unknown): boolean {
  return (sqliteCode(error) & 0xff) === SQLITE_NOTADB;
}

/**
 * True if SQLite found the file malformed, or if a number is stored that no event can have, which node:sqlite refuses
 * to return.
 */
export function isDamage(error: unknown): boolean {
  const primary = sqliteCode(error) & 0xff;
  return primary === SQLITE_CORRUPT || primary === SQLITE_NOTADB || error instanceof RangeError;
}
