import type { Snapshot } from "../store.ts";
import type { DatabaseReader } from "./database-reader.ts";

export function loadSnapshot(reader: DatabaseReader, name: string): Snapshot | undefined {
  const row = reader.get("SELECT version, position, state FROM snapshots WHERE name = ?", name);
  if (!row) return undefined;
  return { version: Number(row["version"]), position: Number(row["position"]), state: String(row["state"]) };
}
