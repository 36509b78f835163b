/**
 * Measures how many events the machine can insert at most: by prepared statements, from one thread that does nothing
 * else.
 */
import { randomBytes } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import type { NewEvent } from "../src/index.ts";

/**
 * The columns of an event as the log stores them: texts, numbers and a finished hash. The benchmark prepares them
 * before it starts to measure time.
 */
type EventRow = readonly [
  stream: number,
  version: number,
  type: number,
  id: string,
  timeMs: number,
  data: string,
  meta: string,
  hash: Uint8Array,
];

/** SQL of a table with the columns and the indexes of the log's own table, without its checks and references. */
const INDEXED = `
  CREATE TABLE events (position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL,
    type INTEGER NOT NULL, id TEXT NOT NULL, time INTEGER NOT NULL, data TEXT NOT NULL, meta TEXT NOT NULL,
    hash BLOB NOT NULL, UNIQUE (stream, version)) STRICT;
  CREATE INDEX events_by_type ON events (type);`;

/** SQL of the smallest table that keeps the same bytes as the log, in the same order. */
const BARE = "CREATE TABLE events (position INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;";

export interface RawTable extends Disposable {
  /** Prepares the events as rows, taking the streams in turn, and returns the function that inserts them durably. */
  prepare(events: readonly NewEvent[], streams: number, rowsPerTransaction: number): () => void;
}

/** Opens a table for raw inserts in a new file, with the settings of the SQLite log in the file `likeLog`. */
export function openRawTable(file: string, kind: "indexed" | "bare", likeLog: string): RawTable {
  const db = new DatabaseSync(file);
  db.exec(`PRAGMA page_size = ${pageBytesOf(likeLog)}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;`);
  if (db.prepare("PRAGMA synchronous").get()?.["synchronous"] !== 2) throw new Error("synchronous is not FULL");
  db.exec(kind === "indexed" ? INDEXED : BARE);
  if (kind === "indexed") expectSameTable(db, likeLog);
  const [begin, commit] = [db.prepare("BEGIN IMMEDIATE"), db.prepare("COMMIT")];
  const inserting = kind === "indexed" ? insertingColumns(db) : insertingBytes(db);
  let rows = 0;

  return {
    prepare(events, streams, rowsPerTransaction) {
      const first = rows + 1;
      const insert = inserting(events.map((event, index) => rowOf(event, index % streams, first + index)));
      rows += events.length;
      return () => {
        for (let start = 0; start < events.length; start += rowsPerTransaction) {
          begin.run();
          const end = Math.min(events.length, start + rowsPerTransaction);
          for (let index = start; index < end; index++) insert(first + index, index);
          commit.run();
        }
      };
    },
    [Symbol.dispose]: () => db.close(),
  };
}

/**
 * Inserts one of the prepared rows. Each value is a separate argument, because spreading an array takes a tenth longer.
 */
type Insert = (position: number, index: number) => void;

function insertingColumns(db: DatabaseSync): (rows: readonly EventRow[]) => Insert {
  const statement = db.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  return (rows) => (position, index) => {
    const [stream, version, type, id, timeMs, data, meta, hash] = rows[index]!;
    statement.run(position, stream, version, type, id, timeMs, data, meta, hash);
  };
}

function insertingBytes(db: DatabaseSync): (rows: readonly EventRow[]) => Insert {
  const statement = db.prepare("INSERT INTO events VALUES (?, ?)");
  return (rows) => {
    const values = rows.map(bytesOf);
    return (position, index) => void statement.run(position, values[index]!);
  };
}

function rowOf({ id, data, meta }: NewEvent, stream: number, version: number): EventRow {
  return [stream, version, 1, id, Date.now(), JSON.stringify(data), JSON.stringify(meta), randomBytes(32)];
}

function bytesOf([stream, version, type, id, timeMs, data, meta, hash]: EventRow): Uint8Array {
  return Buffer.concat([Buffer.from([stream, version, type, id, timeMs, data, meta].join("\n")), hash]);
}

/**
 * Throws if the columns or indexes of the benchmark's table differ from those of the log's table. Inserts into other
 * columns or indexes would be other work, so the two speeds could not be compared.
 */
function expectSameTable(db: DatabaseSync, likeLog: string): void {
  using log = new DatabaseSync(likeLog, { readOnly: true });
  if (describe(log) !== describe(db)) throw new Error("raw-inserts.ts: the log's table has other columns or indexes");
}

function describe(db: DatabaseSync): string {
  const columns = db.prepare("SELECT name, type, pk FROM pragma_table_info('events') ORDER BY cid").all();
  const indexes = db.prepare(
    `SELECT (SELECT group_concat(name) FROM pragma_index_info(i.name)) AS indexed
     FROM pragma_index_list('events') i ORDER BY indexed`,
  );
  return JSON.stringify([columns, indexes.all()]);
}

function pageBytesOf(file: string): number {
  using db = new DatabaseSync(file, { readOnly: true });
  return Number(db.prepare("PRAGMA page_size").get()?.["page_size"]);
}
