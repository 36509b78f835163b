import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { StoreUnusable } from "../errors.ts";
import type { NewEvent, Recorded } from "../store.ts";
import { openReader } from "./connections.ts";
import { isNotADatabase } from "./faults.ts";
import { APPLICATION_ID, FORMAT_VERSION } from "./schema.ts";
import { pragma } from "./settings.ts";

/** What a log is made of. */
export interface ExaminedLog {
  readonly format: number;
  /** Of a log that this version makes; it brings an older one up to date when it opens it, and opens no newer one. */
  readonly currentFormat: number;
  /** The newest event of each type, as it is stored; of a newer format none. */
  readonly newest: readonly Recorded<NewEvent>[];
}

/**
 * Reads what a log is made of and changes nothing, also where opening it would, or be refused. Throws
 * {@link StoreUnusable} for a file that is no log.
 */
export function examineSqliteLog(file: string): ExaminedLog {
  const db = existsSync(`${file}-wal`) ? openReader(file) : openUnused(file);
  try {
    if (pragma(db, "application_id") !== APPLICATION_ID) throw new StoreUnusable("the file is no event log");
    const format = Number(pragma(db, "user_version"));
    return { format, currentFormat: FORMAT_VERSION, newest: format > FORMAT_VERSION ? [] : newestOf(db) };
  } catch (error) {
    throw isNotADatabase(error) ? new StoreUnusable("the file is not an SQLite database", { cause: error }) : error;
  } finally {
    db.close();
  }
}

/** A log that nobody has open: a reader of the usual kind would leave an empty write-ahead log beside it. */
function openUnused(file: string): DatabaseSync {
  const address = pathToFileURL(file);
  address.searchParams.set("immutable", "1");
  return new DatabaseSync(address, { readOnly: true });
}

function newestOf(db: DatabaseSync): readonly Recorded<NewEvent>[] {
  const rows = db
    .prepare(
      `SELECT position, streams.name AS stream, version, types.name AS type, events.id, time, data, meta, hash
      FROM types JOIN events ON position = (SELECT max(position) FROM events WHERE type = types.id)
      JOIN streams ON streams.id = stream ORDER BY position`,
    )
    .all();
  return rows.map((row) => ({
    position: Number(row["position"]),
    stream: String(row["stream"]),
    version: Number(row["version"]),
    type: String(row["type"]),
    id: String(row["id"]),
    time: new Date(Number(row["time"])).toISOString(),
    data: JSON.parse(String(row["data"])),
    meta: JSON.parse(String(row["meta"])),
    hash: Buffer.from(row["hash"] as Uint8Array).toString("hex"),
  }));
}
