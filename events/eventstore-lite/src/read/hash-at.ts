import { GENESIS_HASH } from "../chain.ts";
import type { DatabaseReader } from "./database-reader.ts";

/** The stored hash at a position, in hex; of position 0 what the first event's hash builds on. */
export function readHashAt(reader: DatabaseReader, position: number): string | undefined {
  if (position === 0) return Buffer.from(GENESIS_HASH).toString("hex");
  const row = reader.get("SELECT lower(hex(hash)) AS hash FROM events WHERE position = ?", position);
  return row === undefined ? undefined : String(row["hash"]);
}
