import type { DatabaseSync } from "node:sqlite";
import { createBoundedCache } from "../../bounded-cache.ts";
import { GENESIS_HASH } from "../../event-hash-chain.ts";

/** Maximum number of streams whose version is kept in memory: about 10 MB. Others are looked up in the database. */
const STREAMS_CACHED_MAX = 65_536;
/** Maximum number of types that are cached; an application has tens of them. */
const TYPES_CACHED_MAX = 4_096;

export interface StreamTail {
  /** Row number of the stream; 0 if it has no event yet. */
  id: number;
  version: number;
}

export interface Head {
  position: number;
  timeMs: number;
  hash: Uint8Array;
}

/**
 * State on which the next event builds: the log's head, the version of each stream, and the row number of each event
 * type in the database.
 */
export interface Tail {
  readonly head: Head;
  stream(name: string): StreamTail;
  typeId(name: string): number;
  /** Creates the row of a stream without events. */
  createStream(name: string): number;
  /** Forgets all cached state if another connection has written meanwhile. Call it first in each transaction. */
  refresh(): void;
  /**
   * Forgets all cached state. Call it after a rollback, because what was cached in that transaction is not in the log.
   */
  forget(): void;
}

export function createTail(db: DatabaseSync): Tail {
  // SQLite changes this number only when another connection has written to the file
  // (https://sqlite.org/pragma.html#pragma_data_version).
  const selectChange = db.prepare("PRAGMA data_version");
  const selectHead = db.prepare("SELECT position, time, hash FROM events ORDER BY position DESC LIMIT 1");
  const selectStream = db.prepare(
    `SELECT id, coalesce((SELECT max(version) FROM events WHERE stream = streams.id),
       (SELECT version FROM archived_streams WHERE stream = streams.id ORDER BY position DESC LIMIT 1)) AS version
     FROM streams WHERE name = ?`,
  );
  const insertStream = db.prepare("INSERT INTO streams (name) VALUES (?)");
  const selectType = db.prepare("SELECT id FROM types WHERE name = ?");
  const insertType = db.prepare("INSERT INTO types (name) VALUES (?)");
  const streams = createBoundedCache<string, StreamTail>(STREAMS_CACHED_MAX);
  const types = createBoundedCache<string, number>(TYPES_CACHED_MAX);
  const head: Head = { position: 0, timeMs: 0, hash: GENESIS_HASH };
  let knownChange: unknown;

  function forget(): void {
    streams.clear();
    types.clear();
    knownChange = undefined;
  }

  function loadHead(): void {
    const row = selectHead.get();
    head.position = Number(row?.["position"] ?? 0);
    head.timeMs = Number(row?.["time"] ?? 0);
    head.hash = row ? (row["hash"] as Uint8Array) : GENESIS_HASH;
  }

  return {
    head,
    forget,
    refresh() {
      const change = selectChange.get()?.["data_version"];
      if (change === knownChange) return;
      forget();
      loadHead();
      knownChange = change;
    },
    stream(name) {
      const cached = streams.get(name);
      if (cached) return cached;
      const row = selectStream.get(name);
      const tail = { id: Number(row?.["id"] ?? 0), version: Number(row?.["version"] ?? 0) };
      streams.set(name, tail);
      return tail;
    },
    createStream: (name) => Number(insertStream.run(name).lastInsertRowid),
    typeId(name) {
      const cached = types.get(name);
      if (cached !== undefined) return cached;
      const id = Number(selectType.get(name)?.["id"] ?? insertType.run(name).lastInsertRowid);
      types.set(name, id);
      return id;
    },
  };
}
