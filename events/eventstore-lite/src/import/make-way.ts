import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreUnusable, TargetTaken } from "../errors.ts";
import { isBusy, isNotADatabase } from "../sqlite/faults.ts";
import { refuseLeftBehind } from "../sqlite/left-behind.ts";
import { refuseRemains } from "../sqlite/new-file.ts";
import { requireOurFormat } from "../sqlite/schema.ts";

/** How often the tables of a log that may be replaced are looked at while others close it: not at all. */
const NO_WAIT_MS = 0;

/**
 * Throws {@link TargetTaken} unless a new log can take this place: there is none, or one that holds no event and that
 * nobody has open. Changes no event; leaves an empty log without a write-ahead log that would outlive it.
 */
export function makeWay(file: string): void {
  if (existsSync(file)) requireUnused(file);
  refuseRemains(file);
}

function requireUnused(file: string): void {
  const release = refuseLeftBehind(file);
  const db = new DatabaseSync(file, { timeout: NO_WAIT_MS });
  try {
    requireOurFormat(db);
    if (holdsEvents(db)) throw new TargetTaken(`${file} holds events: only a new log is imported into`);
    // Takes the whole file for a moment, and removes the write-ahead log: fails while anybody else has it open.
    db.exec("PRAGMA journal_mode = DELETE");
  } catch (error) {
    if (isBusy(error)) throw new TargetTaken(`${file} is in use by another process`, { cause: error });
    throw isNotADatabase(error) ? new StoreUnusable(`${file} is not an SQLite database`, { cause: error }) : error;
  } finally {
    db.close();
    release();
  }
}

function holdsEvents(db: DatabaseSync): boolean {
  const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'events'").get();
  return table !== undefined && db.prepare("SELECT 1 FROM events LIMIT 1").get() !== undefined;
}
