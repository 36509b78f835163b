import type { Fault } from "../append/messages.ts";

// Primary result codes, https://sqlite.org/rescode.html; the extended code holds them in its low byte.
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_NOTADB = 26;

/** The extended result code of an error that node:sqlite threw, 0 when it is another error. */
export function sqliteCode(error: unknown): number {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode : 0;
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

/** SQLite found the file malformed, or a number is stored that no event can have (node:sqlite refuses to give it). */
export function isDamage(error: unknown): boolean {
  const primary = sqliteCode(error) & 0xff;
  return primary === SQLITE_CORRUPT || primary === SQLITE_NOTADB || error instanceof RangeError;
}
