import { DatabaseSync } from "node:sqlite";

function appendOnly(table: string): string {
  return `
    CREATE TRIGGER ${table}_are_never_updated BEFORE UPDATE ON ${table}
      BEGIN SELECT RAISE(ABORT, '${table} are append-only'); END;
    CREATE TRIGGER ${table}_are_never_deleted BEFORE DELETE ON ${table}
      BEGIN SELECT RAISE(ABORT, '${table} are append-only'); END;`;
}

/** SQL of a log as the first version of this package left it: its tables, and three events with their hashes. */
const FORMAT_1 = `
  PRAGMA page_size = 8192;
  PRAGMA journal_mode = WAL;
  PRAGMA application_id = 1702259828;
  PRAGMA user_version = 1;
  CREATE TABLE info (one INTEGER PRIMARY KEY CHECK (one = 1), store TEXT NOT NULL) STRICT;
  CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE types (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE events (
    position INTEGER PRIMARY KEY CHECK (position > 0),
    stream INTEGER NOT NULL REFERENCES streams (id),
    version INTEGER NOT NULL,
    type INTEGER NOT NULL REFERENCES types (id),
    id TEXT NOT NULL,
    time INTEGER NOT NULL,
    data TEXT NOT NULL,
    meta TEXT NOT NULL,
    hash BLOB NOT NULL,
    UNIQUE (stream, version)
  ) STRICT;
  CREATE INDEX events_by_type ON events (type);
  ${["events", "streams", "types"].map(appendOnly).join("")}
  CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, version INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE snapshots (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL, position INTEGER NOT NULL, state TEXT NOT NULL
  ) STRICT;
  CREATE TABLE leases (
    name TEXT PRIMARY KEY, holder TEXT NOT NULL, token INTEGER NOT NULL, expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO info VALUES (1, '37296d90-7de9-49f5-b432-4bcfb35865ac');
  INSERT INTO streams VALUES (1, 'a'), (2, 'b');
  INSERT INTO types VALUES (1, 'Added'), (2, 'Removed');
  INSERT INTO events VALUES
    (1, 1, 1, 1, 'e1', 1700000000000, '{"n":1}', '{}',
     x'435825dca727c1a28e7406d9a797fa7e04593480cbbc2a347864025ab702a242'),
    (2, 1, 2, 1, 'e2', 1700000000000, '{"n":2}', '{}',
     x'42b7ab76e486e02ae1942129c7ec94ee5064eef5d9829b200c88c035e4024f3a'),
    (3, 2, 1, 2, 'e3', 1700000000000, '{}', '{"by":"me"}',
     x'475c856a8332a9d61aef40da2399cd29d15128880a27e8220a3f64b180de744e');
  INSERT INTO idempotency_keys VALUES ('k', 1, 2, 2);
  INSERT INTO snapshots VALUES ('stats', 1, 3, 's');
`;

/** Writes the log of {@link FORMAT_1} to a file. */
export function createFormat1(file: string): void {
  const db = new DatabaseSync(file);
  db.exec(FORMAT_1);
  db.close();
}
