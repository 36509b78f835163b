import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { CursorRefused } from "../errors.ts";
import type { BegunAs, Cursor } from "../store.ts";
import { lastPosition } from "./read/bounds.ts";
import type { DatabaseReader } from "./read/database-reader.ts";

interface Epoch {
  readonly id: string;
  /** The last position of the epoch before. */
  readonly after: number;
  readonly begunAs: BegunAs;
}

/** The lives of an open log. Only the opening of a copy adds one, so that the list is read once. */
export interface Epochs {
  readonly current: string;
  /** How the current one began. */
  readonly begunAs: BegunAs;
  cursor(position: number): Cursor;
  /** The first position that a consumer with this cursor has not seen. Throws {@link CursorRefused}. */
  after(cursor: Cursor): number;
}

export function readEpochs(reader: DatabaseReader, store: string): Epochs {
  const rows = reader.all("SELECT id, after, begun_as FROM epochs ORDER BY number");
  const epochs = rows.map((row): Epoch => {
    return { id: String(row["id"]), after: Number(row["after"]), begunAs: String(row["begun_as"]) as BegunAs };
  });
  const current = epochs.at(-1)!;

  return {
    current: current.id,
    begunAs: current.begunAs,
    // The epoch in which the event was appended: the log that a copy was taken of knows the shared ones too.
    cursor: (position) => ({
      store,
      epoch: (epochs.findLast(({ after }) => after < position) ?? epochs[0]!).id,
      position,
    }),
    after(cursor) {
      if (cursor.store !== store) throw refusal("other-store", `the log is ${store}, the cursor of ${cursor.store}`);
      const index = epochs.findIndex(({ id }) => id === cursor.epoch);
      if (index === -1) throw refusal("unknown-epoch", `the log never had the cursor's epoch ${cursor.epoch}`);
      const { position } = cursor;
      const end = epochs[index + 1]?.after ?? Infinity;
      if (position > end) throw refusal("epoch-ended", `the cursor is at ${position}, its epoch ended at ${end}`);
      const head = lastPosition(reader);
      if (position > head) throw refusal("beyond-head", `the cursor is at ${position}, the log ends at ${head}`);
      return position + 1;
    },
  };
}

function refusal(reason: CursorRefused["reason"], what: string): CursorRefused {
  return new CursorRefused(reason, `${what}: what the consumer has seen is not what this log holds`);
}

/**
 * The lives that a log has had, oldest first. The last row holds now, and each of the others held up to the position at
 * which the next one begins.
 */
export const EPOCHS = `
  CREATE TABLE epochs (
    number INTEGER PRIMARY KEY,
    id TEXT UNIQUE, -- NULL: of a copy, before it is first written to
    after INTEGER NOT NULL, -- the last position of the epoch before
    begun_as TEXT NOT NULL DEFAULT 'new' -- new, backup or import: what the epoch goes on with
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

/** Begins the epoch of a copy that is now opened to be written to; inside of a transaction. */
export function beginEpochOfCopy(db: DatabaseSync): void {
  db.prepare("UPDATE epochs SET id = ? WHERE id IS NULL").run(randomUUID());
}
