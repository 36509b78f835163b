import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Awaitable } from "../value-or-promise.ts";
import { openArchive } from "../segments/log-archive.ts";
import { namingSegments, wholeFromSegment } from "../segments/read-segments-and-database.ts";
import type { SegmentReader } from "../segments/segment-storage.ts";
import { createDecode, identityCodec, type StoredEvent } from "../codec.ts";
import { StoreUnusable } from "../errors.ts";
import type { NewEvent, Recorded } from "../event-store-interface.ts";
import { createArchiveTable } from "./archive-tables.ts";
import { openReader } from "./connections.ts";
import { isNotADatabase } from "./classify-errors.ts";
import { createDatabaseReader } from "./read/database-reader.ts";
import { APPLICATION_ID, FORMAT_VERSION } from "./schema.ts";
import { pragma } from "./connection-settings.ts";

/** The format and the newest events of a log. */
export interface ExaminedLog {
  readonly format: number;
  /** The format that this version writes. It updates an older log when it opens it, and opens no newer one. */
  readonly currentFormat: number;
  /** The newest event of each type, as it is stored, archived ones too. Empty if the format is newer. */
  readonly newest: readonly Recorded<NewEvent>[];
}

/**
 * Reads a log's format and newest events without changing anything, even if opening it would change it or be refused.
 * Throws {@link StoreUnusable} for a file that is no log, {@link SegmentDamaged} if an event's segment is missing.
 */
export function examineSqliteLog(file: string, segments: SegmentReader): Promise<ExaminedLog> {
  return examining(file, async (db) => {
    const format = Number(pragma(db, "user_version"));
    return { format, currentFormat: FORMAT_VERSION, newest: await newestOf(db, format, segments) };
  });
}

/**
 * Opens a log's file for reading, passes it to `examine`, and closes it. Throws {@link StoreUnusable} for a file that
 * is no log.
 */
async function examining<Answer>(file: string, examine: (db: DatabaseSync) => Awaitable<Answer>): Promise<Answer> {
  const db = existsSync(`${file}-wal`) ? openReader(file) : openUnused(file);
  try {
    if (pragma(db, "application_id") !== APPLICATION_ID) throw new StoreUnusable("the file is no event log");
    return await examine(db);
  } catch (error) {
    throw isNotADatabase(error) ? new StoreUnusable("the file is not an SQLite database", { cause: error }) : error;
  } finally {
    db.close();
  }
}

/**
 * Returns the id and the epoch of the log in a file, and changes nothing. `epoch` is null in a copy that was not opened
 * yet.
 */
export function identifySqliteLog(file: string): Promise<{ readonly id: string; readonly epoch: string | null }> {
  return examining(file, (db) => {
    const row = db
      .prepare("SELECT store AS id, (SELECT id FROM epochs ORDER BY number DESC LIMIT 1) AS epoch FROM info")
      .get();
    return row as { id: string; epoch: string | null };
  });
}

/**
 * Opens the file of a log that no process uses. Opened in the normal way, even for reading, the database would get an
 * empty write-ahead log.
 */
function openUnused(file: string): DatabaseSync {
  const address = pathToFileURL(file);
  address.searchParams.set("immutable", "1");
  return new DatabaseSync(address, { readOnly: true });
}

/** The first format that has an archive. */
const ARCHIVE_FORMAT = 4;

async function newestOf(
  db: DatabaseSync,
  format: number,
  segments: SegmentReader,
): Promise<readonly Recorded<NewEvent>[]> {
  if (format > FORMAT_VERSION) return [];
  const rows = db
    .prepare(
      `SELECT position, streams.name AS stream, version, types.name AS type, events.id, time AS timeMs, data, meta,
        lower(hex(hash)) AS hash
      FROM types JOIN events ON position = (SELECT max(position) FROM events WHERE type = types.id)
      JOIN streams ON streams.id = stream ORDER BY position`,
    )
    .all() as unknown as StoredEvent[];
  const archived = format < ARCHIVE_FORMAT ? [] : await newestArchived(db, segments);
  return [...archived, ...(await createDecode(identityCodec())(rows))];
}

/** Returns the newest event of each type that has events in the archive only. */
async function newestArchived(db: DatabaseSync, segments: SegmentReader): Promise<Recorded<NewEvent>[]> {
  const types = db
    .prepare("SELECT name FROM types WHERE NOT EXISTS (SELECT 1 FROM events WHERE type = types.id)")
    .all();
  const archive = openArchive(createArchiveTable(createDatabaseReader(db)), segments);
  await archive.catalogue.refresh();
  const range = { from: 1, to: archive.catalogue.end, backwards: true, limit: 1 };
  const decode = namingSegments(archive, createDecode(identityCodec()));
  const newest: Recorded<NewEvent>[] = [];
  for (const { name } of types) {
    for await (const rows of archive.chunks({ ...range, types: [String(name)] }, wholeFromSegment))
      newest.push(...(await decode(rows)));
  }
  return newest;
}
