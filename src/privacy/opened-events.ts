import type { NewEvent, Query, Recorded } from "eventstore-lite";
import { inChunks } from "../platform/in-chunks.ts";
import type { EncryptedLog } from "./encrypted-log.ts";

/** Where what is stored is read and opened. */
export type OpenableLog = Pick<EncryptedLog, "readStored" | "open">;

/** Events whose keys are fetched together. */
const CHUNK_EVENTS = 512;

/** Events as they are stored, and their data as it was written, or as erased. */
export async function* openedEvents(
  log: OpenableLog,
  query: Query,
): AsyncGenerator<{ readonly stored: Recorded<NewEvent>; readonly data: unknown }, void, void> {
  for await (const chunk of inChunks(log.readStored(query), CHUNK_EVENTS)) {
    const opened = await log.open(chunk);
    for (const [at, stored] of chunk.entries()) yield { stored, data: opened[at]?.data };
  }
}
