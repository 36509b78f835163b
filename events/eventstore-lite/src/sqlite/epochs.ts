import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { BegunAs, Epoch } from "../store.ts";
import type { DatabaseReader } from "./read/database-reader.ts";

/** The epochs of an open log. Only the opening of a copy adds one, so that the list is read once. */
export function readEpochs(reader: DatabaseReader): readonly Epoch[] {
  const rows = reader.all("SELECT id, after, begun_as FROM epochs ORDER BY number");
  return rows.map((row) => {
    return { id: String(row["id"]), after: Number(row["after"]), begunAs: String(row["begun_as"]) as BegunAs };
  });
}

/**
 * The epochs that a log has had, oldest first. The last row holds now, and each of the others held up to the position at
 * which the next one begins.
 */
export const EPOCHS = `
  CREATE TABLE epochs (
    number INTEGER PRIMARY KEY,
    id TEXT UNIQUE, -- NULL: of a copy, before it is first written to
    after INTEGER NOT NULL, -- the last position of the epoch before
    begun_as TEXT NOT NULL DEFAULT 'new' -- what the epoch goes on with
  ) STRICT;
`;

/** To {@link EPOCHS} of a table that does not hold how an epoch began: all but the first did as copies. */
export const ADD_BEGUN_AS = `
  ALTER TABLE epochs ADD COLUMN begun_as TEXT NOT NULL DEFAULT 'new';
  UPDATE epochs SET begun_as = 'backup' WHERE number > (SELECT min(number) FROM epochs);
`;

/** The epoch of a new log; of one that was made before there were epochs, all its events are in the first. */
export function beginFirstEpoch(db: DatabaseSync): void {
  db.prepare("INSERT INTO epochs (id, after) VALUES (?, 0)").run(randomUUID());
}

/** Gives a new log the epochs of another one. */
export function writeEpochs(db: DatabaseSync, epochs: readonly Epoch[]): void {
  db.exec("DELETE FROM epochs");
  const insert = db.prepare("INSERT INTO epochs (id, after, begun_as) VALUES (?, ?, ?)");
  for (const { id, after, begunAs } of epochs) insert.run(id, after, begunAs);
}

/** Marks a log whose events another one has recorded. */
export function markAsImport(db: DatabaseSync): void {
  db.exec("UPDATE epochs SET begun_as = 'import'");
}

/**
 * Marks a database as a copy. It has no epoch of its own yet: one copy may be restored several times, and each of these
 * lives is another continuation.
 */
export function markAsCopy(db: DatabaseSync): void {
  db.exec("INSERT INTO epochs (after, begun_as) SELECT coalesce(max(position), 0), 'backup' FROM events");
}

/** Begins another epoch at once; inside of a transaction. */
export function beginEpoch(db: DatabaseSync, begunAs: BegunAs): void {
  db.prepare("INSERT INTO epochs (id, after, begun_as) SELECT ?, coalesce(max(position), 0), ? FROM events").run(
    randomUUID(),
    begunAs,
  );
}

/** Begins the epoch of a copy that is now opened to be written to; inside of a transaction. */
export function beginEpochOfCopy(db: DatabaseSync): void {
  db.prepare("UPDATE epochs SET id = ? WHERE id IS NULL").run(randomUUID());
}
