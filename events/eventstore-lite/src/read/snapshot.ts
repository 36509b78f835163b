import { SnapshotAhead } from "../errors.ts";
import type { Snapshot } from "../store.ts";
import { lastPosition } from "./bounds.ts";
import type { DatabaseReader } from "./database-reader.ts";

/** Throws {@link SnapshotAhead}. The head is read after the snapshot, so that one just saved is not found ahead. */
export function loadSnapshot(reader: DatabaseReader, name: string): Snapshot | undefined {
  const row = reader.get("SELECT version, position, state FROM snapshots WHERE name = ?", name);
  if (!row) return undefined;
  const position = Number(row["position"]);
  const head = lastPosition(reader);
  if (position > head) throw new SnapshotAhead(name, position, head);
  return { version: Number(row["version"]), position, state: String(row["state"]) };
}
