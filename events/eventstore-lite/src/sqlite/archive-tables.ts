import type { DatabaseSync } from "node:sqlite";
import type { ArchivedStream, ArchiveTable, SegmentEntry, SegmentFile, StreamPlace } from "../segments/catalogue.ts";
import { findKeySegments, readWholeKeys } from "./archived-idempotency-keys.ts";
import type { DatabaseReader } from "./read/database-reader.ts";

/** SQL column of a segment's lowest position with an idempotency key; 0 if the segment holds none. */
export const KEYS_FROM = "keys_from INTEGER NOT NULL DEFAULT 0";

/**
 * SQL tables of the archived segments, which hold the log's first events, and of the last event of each stream in each
 * segment. The version of a stream whose events are archived continues from there. Both are append-only.
 */
export const ARCHIVE: string = `
  CREATE TABLE segments (
    last INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    name TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    hash BLOB NOT NULL, -- of the last event
    first_time INTEGER NOT NULL, -- milliseconds since 1970, UTC
    last_time INTEGER NOT NULL,
    types TEXT NOT NULL, -- JSON: how many events it has of each
    ${KEYS_FROM}
  ) STRICT;

  CREATE TABLE archived_streams (
    stream INTEGER NOT NULL REFERENCES streams (id),
    position INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (stream, position)
  ) STRICT, WITHOUT ROWID;
`;

/** SQL trigger that keeps the log append-only: only archived events may be deleted. */
export const KEEP_UNLESS_ARCHIVED = `
  CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
    WHEN OLD.position > (SELECT coalesce(max(last), 0) FROM segments)
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
`;

/** SQL trigger that lets a segment be recorded only with the next events of the log, and never with the newest. */
export const FOLLOW_THE_LOG: string = `
  CREATE TRIGGER segments_follow_the_log BEFORE INSERT ON segments
    WHEN NOT EXISTS (
      SELECT 1 FROM events WHERE position = NEW.last AND hash = NEW.hash AND position < (SELECT max(position) FROM events)
        AND NEW.first = (SELECT coalesce(max(last), 0) + 1 FROM segments)
    )
    BEGIN SELECT RAISE(ABORT, 'a segment holds the next events of the log, and never the newest'); END;
`;

/** Maximum number of archived streams that one statement returns. */
const CHUNK_STREAMS = 1_024;

export function archiveEnd(reader: DatabaseReader): number {
  return Number(reader.get("SELECT max(last) AS last FROM segments")?.["last"] ?? 0);
}

export function createArchiveTable(reader: DatabaseReader): ArchiveTable {
  return {
    end: () => archiveEnd(reader),
    segmentsAfter(position) {
      const rows = reader.all(
        `SELECT first, last, name, bytes, sha256, lower(hex(hash)) AS hash, first_time AS firstTime,
           last_time AS lastTime, types, keys_from AS keysFrom
         FROM segments WHERE last > ? ORDER BY last`,
        position,
      ) as unknown as (Omit<SegmentEntry, "types"> & { readonly types: string })[];
      return rows.map((row) => ({ ...row, types: JSON.parse(row.types) as SegmentEntry["types"] }));
    },
    wholeKeys: (range) => readWholeKeys(reader, range),
    keySegments: (keys) => keys.map((key) => findKeySegments(reader, key)),
    streamPlaces: (stream) =>
      reader.all(
        `SELECT position, version FROM archived_streams
         WHERE stream = (SELECT id FROM streams WHERE name = ?) ORDER BY position`,
        stream,
      ) as unknown as StreamPlace[],
    streamsAfter: (name) =>
      reader.all(
        `SELECT s.name AS stream, max(a.version) AS version, max(a.position) AS position, count(*) AS segments
         FROM streams s CROSS JOIN archived_streams a ON a.stream = s.id
         WHERE s.name > ? GROUP BY s.name ORDER BY s.name LIMIT ${CHUNK_STREAMS}`,
        name,
      ) as unknown as ArchivedStream[],
  };
}

/**
 * Records a segment and removes its events; runs inside a transaction. Has no effect unless the segment is the next
 * one, its last event has the hash that the segment names, and the log has a newer event.
 */
export function createRecordSegment(db: DatabaseSync): (file: SegmentFile) => void {
  const isNext = db.prepare(
    `SELECT 1 FROM events WHERE position = ? AND hash = ? AND position < (SELECT max(position) FROM events)
       AND (SELECT coalesce(max(last), 0) + 1 FROM segments) = ?`,
  );
  const insert = db.prepare(
    `INSERT INTO segments (first, last, name, bytes, sha256, hash, keys_from, first_time, last_time, types)
     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, min(first_time), max(last_time), json_group_object(name, events)
     FROM (
       SELECT t.name, count(*) AS events, min(e.time) AS first_time, max(e.time) AS last_time
       FROM events e JOIN types t ON t.id = e.type WHERE e.position BETWEEN ?1 AND ?2 GROUP BY t.name
     )
     HAVING sum(events) = ?2 - ?1 + 1`,
  );
  const insertStreams = db.prepare(
    `INSERT INTO archived_streams (stream, position, version)
     SELECT stream, max(position), max(version) FROM events WHERE position BETWEEN ? AND ? GROUP BY stream`,
  );
  const remove = db.prepare("DELETE FROM events WHERE position BETWEEN ? AND ?");
  return ({ first, last, name, bytes, sha256, hash, keysFrom }) => {
    const link = Buffer.from(hash, "hex");
    if (isNext.get(last, link, first) === undefined) return;
    if (insert.run(first, last, name, bytes, sha256, link, keysFrom).changes === 0) return;
    insertStreams.run(first, last);
    remove.run(first, last);
  };
}
