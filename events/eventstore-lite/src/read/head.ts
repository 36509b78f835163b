import { GENESIS_HASH } from "../chain.ts";
import type { Head, StreamHead } from "../store.ts";
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
  return { version: Number(row?.["version"] ?? 0), position: Number(row?.["position"] ?? 0) };
}
