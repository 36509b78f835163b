// Makes a copy of a log and verifies it; started by backup.ts.
import { truncateSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { openArchive } from "../segments/log-archive.ts";
import { createDecode, identityCodec } from "../codec.ts";
import type { FetchFile } from "../thread-task.ts";
import { archiveEnd, createArchiveTable } from "./archive-tables.ts";
import { answerBackup } from "./backup.ts";
import { openReader } from "./connections.ts";
import { markAsCopy, readEpochs } from "./epochs-begun-by-copies.ts";
import { fillCopy } from "./fill-copy.ts";
import { lastPosition } from "./read/position-bounds.ts";
import { createDatabaseReader, type DatabaseReader } from "./read/database-reader.ts";
import { readBatches, readKeys } from "./read/read.ts";

export interface BackupOrder {
  readonly source: string;
  readonly target: string;
}

/** Number of rows that one statement returns. */
const CHUNK_ROWS = 1_024;

/** Copies a log event by event, because archived events are not in the database file. */
async function copyWithArchive(reader: DatabaseReader, target: string, fetchFile: FetchFile): Promise<void> {
  const archive = openArchive(createArchiveTable(reader), { read: fetchFile });
  const to = lastPosition(reader);
  await fillCopy(target, {
    id: String(reader.get("SELECT store FROM info")?.["store"]),
    epochs: readEpochs(reader),
    events: readBatches({ database: reader, archive }, createDecode(identityCodec()), { to }),
    keys: readKeys({ database: reader, archive }, { from: 1, to }),
    snapshotsAfter: (name) =>
      reader.all(
        `SELECT name, version, position, state FROM snapshots
         WHERE name > ? AND position <= ? ORDER BY name LIMIT ${CHUNK_ROWS}`,
        name,
        to,
      ),
  });
}

function mark(target: string): void {
  const db = new DatabaseSync(target);
  try {
    // Keeps the journal in memory: no other program knows the file yet, and a crash discards it, so a journal file
    // would only be left behind.
    db.exec("PRAGMA journal_mode = MEMORY");
    markAsCopy(db);
  } finally {
    db.close();
  }
}

await answerBackup(async ({ source, target }: BackupOrder, fetchFile) => {
  const db = openReader(source);
  try {
    const reader = createDatabaseReader(db);
    if (archiveEnd(reader) === 0) {
      db.prepare("VACUUM INTO ?").run(target);
      if (archiveEnd(reader) === 0) return mark(target);
      // Events may have moved into the archive before the copy was made, so the copy is made again with the archived
      // events.
      truncateSync(target);
    }
    await copyWithArchive(reader, target, fetchFile);
  } finally {
    db.close();
  }
});
