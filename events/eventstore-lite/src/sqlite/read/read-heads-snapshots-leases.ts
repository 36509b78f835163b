import { GENESIS_HASH } from "../../event-hash-chain.ts";
import { SnapshotAhead } from "../../errors.ts";
import type { Head, Lease, Snapshot, SnapshotEntry, StreamHead } from "../../event-store-interface.ts";
import { isRunning } from "../writer/leases.ts";
import { lastPosition } from "./position-bounds.ts";
import type { DatabaseReader } from "./database-reader.ts";

export function readHead(reader: DatabaseReader): Head {
  const row = reader.get("SELECT position, time, lower(hex(hash)) AS hash FROM events ORDER BY position DESC LIMIT 1");
  if (!row) return { position: 0, hash: Buffer.from(GENESIS_HASH).toString("hex"), time: undefined };
  return {
    position: Number(row["position"]),
    hash: String(row["hash"]),
    time: new Date(Number(row["time"])).toISOString(),
  };
}

export function readStreamHead(reader: DatabaseReader, stream: string): StreamHead {
  const row = reader.get(
    `SELECT version, position FROM events
     WHERE stream = (SELECT id FROM streams WHERE name = ?) ORDER BY version DESC LIMIT 1`,
    stream,
  );
  const found = row ?? archivedHead(reader, stream);
  return { version: Number(found?.["version"] ?? 0), position: Number(found?.["position"] ?? 0) };
}

function archivedHead(reader: DatabaseReader, stream: string): ReturnType<DatabaseReader["get"]> {
  return reader.get(
    `SELECT version, position FROM archived_streams
     WHERE stream = (SELECT id FROM streams WHERE name = ?) ORDER BY position DESC LIMIT 1`,
    stream,
  );
}

/**
 * The stored hash of the event at a position, in hex. Position 0 has the hash from which the first event's hash is
 * computed.
 */
export function readHashAt(reader: DatabaseReader, position: number): string | undefined {
  if (position === 0) return Buffer.from(GENESIS_HASH).toString("hex");
  const row = reader.get("SELECT lower(hex(hash)) AS hash FROM events WHERE position = ?", position);
  return row === undefined ? undefined : String(row["hash"]);
}

/**
 * Throws {@link SnapshotAhead} if the snapshot holds more than the log. Reads the log's head after the snapshot,
 * because a snapshot that was saved in between would seem to be ahead of the log.
 */
export function loadSnapshot(reader: DatabaseReader, name: string): Snapshot | undefined {
  const row = reader.get("SELECT version, position, state FROM snapshots WHERE name = ?", name);
  if (!row) return undefined;
  const position = Number(row["position"]);
  const head = lastPosition(reader);
  if (position > head) throw new SnapshotAhead(name, position, head);
  return { version: Number(row["version"]), position, state: String(row["state"]) };
}

/**
 * Lists the snapshots whose names begin with a prefix. Names are ordered by their bytes, so that a prefix is a range of
 * the index.
 */
export function listSnapshots(reader: DatabaseReader, prefix: string): readonly SnapshotEntry[] {
  const rows = reader.all(
    `SELECT name, version, position, octet_length(state) AS bytes FROM snapshots
     WHERE name >= ? AND name < ? ORDER BY name`,
    prefix,
    `${prefix}\u{10ffff}`,
  );
  return rows.map((row) => ({
    name: String(row["name"]),
    version: Number(row["version"]),
    position: Number(row["position"]),
    bytes: Number(row["bytes"]),
  }));
}

export function listLeases(reader: DatabaseReader, names: readonly string[], nowMs: number): readonly Lease[] {
  const rows = reader.all(
    `SELECT name, holder, token, expires_at, ttl FROM leases
     WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name`,
    JSON.stringify(names),
  );
  return rows
    .map((row) => ({
      name: String(row["name"]),
      holder: String(row["holder"]),
      token: Number(row["token"]),
      expires_at: Number(row["expires_at"]),
      ttl: Number(row["ttl"]),
    }))
    .filter((lease) => isRunning(lease, nowMs))
    .map(({ name, holder, token, expires_at }) => ({ name, holder, token, expiresAt: new Date(expires_at) }));
}

/**
 * Creates a function that returns the name of a type. It looks up the name if it gets a row number, and returns a name
 * unchanged. All names are cached: they never change, and an application has only tens of them.
 */
export function createTypeNames(reader: DatabaseReader): (type: number | string) => string {
  const names: string[] = [];
  const find = (type: number): string => {
    const name = reader.get("SELECT name FROM types WHERE id = ?", type)?.["name"];
    return typeof name === "string" ? name : `type ${type}`;
  };
  return (type) => (typeof type === "string" ? type : (names[type] ??= find(type)));
}
