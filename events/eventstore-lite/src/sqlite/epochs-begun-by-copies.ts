import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { BegunAs, Epoch } from "../event-store-interface.ts";
import type { DatabaseReader } from "./read/database-reader.ts";

/** Reads the epochs of an open log. Only opening a copy adds one, so they are read once. */
export function readEpochs(reader: DatabaseReader): readonly Epoch[] {
  const rows = reader.all("SELECT id, after, begun_as FROM epochs ORDER BY number");
  return rows.map((row) => {
    return { id: String(row["id"]), after: Number(row["after"]), begunAs: String(row["begun_as"]) as BegunAs };
  });
}

/**
 * The epochs of a log, oldest first. The last row is the current epoch; each other one ended at the position after
 * which the next begins.
 */
export const EPOCHS = `
  CREATE TABLE epochs (
    number INTEGER PRIMARY KEY,
    id TEXT UNIQUE, -- NULL: of a copy, before it is first written to
    after INTEGER NOT NULL, -- the last position of the epoch before
    begun_as TEXT NOT NULL DEFAULT 'new' -- what the epoch goes on with
  ) STRICT;
`;

/**
 * SQL that adds to {@link EPOCHS} how each epoch began. In a table without that column, all epochs but the first began
 * as copies.
 */
export const ADD_BEGUN_AS = `
  ALTER TABLE epochs ADD COLUMN begun_as TEXT NOT NULL DEFAULT 'new';
  UPDATE epochs SET begun_as = 'backup' WHERE number > (SELECT min(number) FROM epochs);
`;

/**
 * Begins the first epoch of a log. In a log that was made before there were epochs, all existing events belong to it.
 */
export function beginFirstEpoch(db: DatabaseSync): void {
  db.prepare("INSERT INTO epochs (id, after) VALUES (?, 0)").run(randomUUID());
}

/** Gives a new log the epochs of another one. */
export function writeEpochs(db: DatabaseSync, epochs: readonly Epoch[]): void {
  db.exec("DELETE FROM epochs");
  const insert = db.prepare("INSERT INTO epochs (id, after, begun_as) VALUES (?, ?, ?)");
  for (const { id, after, begunAs } of epochs) insert.run(id, after, begunAs);
}

/** Marks a log as an import of another log's events. */
export function markAsImport(db: DatabaseSync): void {
  db.exec("UPDATE epochs SET begun_as = 'import'");
}

/**
 * Marks a database as a copy. Its epoch has no id yet, because one copy may be restored several times, and each
 * restored log is another continuation.
 */
export function markAsCopy(db: DatabaseSync): void {
  db.exec("INSERT INTO epochs (after, begun_as) SELECT coalesce(max(position), 0), 'backup' FROM events");
}

/** Begins a new epoch of a log immediately; runs inside a transaction. */
export function beginEpoch(db: DatabaseSync, begunAs: BegunAs): void {
  db.prepare("INSERT INTO epochs (id, after, begun_as) SELECT ?, coalesce(max(position), 0), ? FROM events").run(
    randomUUID(),
    begunAs,
  );
}

/** Gives the epoch of a copy its id once the copy is opened for writing; runs inside a transaction. */
export function beginEpochOfCopy(db: DatabaseSync): void {
  db.prepare("UPDATE epochs SET id = ? WHERE id IS NULL").run(randomUUID());
}
