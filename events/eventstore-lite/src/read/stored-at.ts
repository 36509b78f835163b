import type { StoredEvent } from "../recorded.ts";
import { readChunks, WHOLE } from "./chunks.ts";
import type { DatabaseReader } from "./database-reader.ts";

/** Reads one event that is known to be there. */
export function createStoredAt(reader: DatabaseReader): (position: number) => StoredEvent {
  return (position) => {
    const one = { from: position, to: position, backwards: false, limit: 1 };
    for (const [stored] of readChunks(reader, WHOLE, one)) if (stored !== undefined) return stored;
    throw new Error(`the log has no event at ${position}`);
  };
}
