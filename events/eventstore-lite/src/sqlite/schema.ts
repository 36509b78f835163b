import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { StoreUnusable } from "../errors.ts";
import { ARCHIVE, FOLLOW_THE_LOG, KEEP_UNLESS_ARCHIVED, KEYS_FROM } from "./archive-tables.ts";
import { ARCHIVED_KEYS } from "./archived-idempotency-keys.ts";
import { ADD_BEGUN_AS, beginEpochOfCopy, beginFirstEpoch, EPOCHS } from "./epochs-begun-by-copies.ts";
import { pragma } from "./connection-settings.ts";
import { createBoundaries, createTransaction } from "./transaction.ts";

/**
 * Number in the file's header, "evlt" in ASCII, that marks the file as a log of this package
 * (https://sqlite.org/pragma.html#pragma_application_id).
 */
export const APPLICATION_ID = 0x65766c74;

/**
 * Format of a log's file; it grows with each change of the tables or of the canonical bytes. 2: epochs, time of leases;
 * 3: how epochs began, digests of idempotency keys; 4: segments that events move into; 5: segments that keys move into.
 */
export const FORMAT_VERSION = 5;

/**
 * SQL column of the digest of the request that used an idempotency key; empty if the request is unknown, and then any
 * repeat fits it.
 */
const DIGEST = "digest TEXT NOT NULL DEFAULT ''";

const TABLES = `
  CREATE TABLE info (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    store TEXT NOT NULL
  ) STRICT;

  -- Names are stored once; an event refers to them by number.
  CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE types (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

  CREATE TABLE events (
    position INTEGER PRIMARY KEY CHECK (position > 0),
    stream INTEGER NOT NULL REFERENCES streams (id),
    version INTEGER NOT NULL,
    type INTEGER NOT NULL REFERENCES types (id),
    id TEXT NOT NULL,
    time INTEGER NOT NULL, -- milliseconds since 1970, UTC
    data TEXT NOT NULL,
    meta TEXT NOT NULL,
    hash BLOB NOT NULL,
    UNIQUE (stream, version)
  ) STRICT;

  -- Every index entry ends with the row's position, so this one is in order of (type, position).
  CREATE INDEX events_by_type ON events (type);

  -- The log is append-only for everybody who writes SQL too. (REPLACE is not stopped by these, and a check before
  -- every insert costs half as much as the insert; the hash chain shows it.)
${neverUpdated("events")}${["streams", "types"].map(appendOnly).join("")}
  CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    version INTEGER NOT NULL,
    ${DIGEST}
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE snapshots (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    state TEXT NOT NULL
  ) STRICT;

  -- A released lease keeps its row, so that its token never starts again from one.
  CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    token INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, -- milliseconds since 1970, UTC
    ttl INTEGER NOT NULL -- milliseconds for which it was taken
  ) STRICT, WITHOUT ROWID;
${EPOCHS}${withArchive()}`;

/** Returns SQL for the archive's tables and the triggers that protect them, which format 4 added. */
function withArchive(): string {
  return `${ARCHIVE}${KEEP_UNLESS_ARCHIVED}${["segments", "archived_streams"].map(appendOnly).join("")}${withKeys()}`;
}

/**
 * Returns SQL for what format 5 added: the table of archived idempotency keys and its triggers, and the trigger of new
 * segments.
 */
function withKeys(): string {
  return `${FOLLOW_THE_LOG}${ARCHIVED_KEYS}${appendOnly("archived_keys")}`;
}

function neverUpdated(table: string): string {
  return `
  CREATE TRIGGER ${table}_are_never_updated BEFORE UPDATE ON ${table}
    BEGIN SELECT RAISE(ABORT, '${table} are append-only'); END;
`;
}

function appendOnly(table: string): string {
  return `${neverUpdated(table)}
  CREATE TRIGGER ${table}_are_never_deleted BEFORE DELETE ON ${table}
    BEGIN SELECT RAISE(ABORT, '${table} are append-only'); END;
`;
}

/** Throws {@link StoreUnusable} unless the database is empty or a log that this version can write. Changes nothing. */
export function requireOurFormat(db: DatabaseSync): void {
  if (isEmpty(db)) return;
  if (pragma(db, "application_id") !== APPLICATION_ID) {
    throw new StoreUnusable("the file is a database of another application, not an event log");
  }
  const version = Number(pragma(db, "user_version"));
  if (version > FORMAT_VERSION) {
    throw new StoreUnusable(`the log has format ${version}; this program knows formats up to ${FORMAT_VERSION}`);
  }
}

/**
 * Creates the tables in an empty database, or updates those of an older format, in one transaction, even if several
 * processes do so at once. Returns the log's id, which is `id` if the log was created now.
 */
export function createSchema(db: DatabaseSync, id: string = randomUUID()): string {
  createTransaction(createBoundaries(db))(() => {
    if (isEmpty(db)) createTables(db, id);
    else if (Number(pragma(db, "user_version")) < FORMAT_VERSION) migrate(db);
    beginEpochOfCopy(db);
  });
  return String(db.prepare("SELECT store FROM info").get()?.["store"]);
}

function createTables(db: DatabaseSync, id: string): void {
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT_VERSION}; ${TABLES}`);
  db.prepare("INSERT INTO info (one, store) VALUES (1, ?)").run(id);
  beginFirstEpoch(db);
}

/** Updates the tables to the current format; runs inside a transaction. */
function migrate(db: DatabaseSync): void {
  const format = Number(pragma(db, "user_version"));
  db.exec(`PRAGMA user_version = ${FORMAT_VERSION}`);
  if (format === 4) {
    db.exec(`ALTER TABLE segments ADD COLUMN ${KEYS_FROM}; ${withKeys()}`);
    return;
  }
  db.exec(`DROP TRIGGER events_are_never_deleted; ${withArchive()}`);
  if (format >= 3) return;
  db.exec(`ALTER TABLE idempotency_keys ADD COLUMN ${DIGEST}`);
  if (format >= 2) {
    db.exec(ADD_BEGUN_AS);
    return;
  }
  // A lease of an older format counts as expired, because its holder is gone.
  db.exec(`${EPOCHS}; ALTER TABLE leases ADD COLUMN ttl INTEGER NOT NULL DEFAULT 0`);
  beginFirstEpoch(db);
}

function isEmpty(db: DatabaseSync): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
}
