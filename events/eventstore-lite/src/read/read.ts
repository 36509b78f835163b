import type { Decode } from "../recorded.ts";
import type { NewEvent, Query, Recorded } from "../store.ts";
import { lastPosition, lastPositionUntil } from "./bounds.ts";
import { readChunks } from "./chunks.ts";
import type { DatabaseReader } from "./database-reader.ts";
import { nextTurn } from "./next-turn.ts";

/** {@link Query} whose members may be given as undefined. */
export type OpenQuery = { readonly [Member in keyof Query]: Query[Member] | undefined };

/**
 * Reads what the log holds when the first event is asked for; what is appended meanwhile is left out.
 * Between chunks other work gets its turn.
 */
export async function* readEvents<E extends NewEvent>(
  reader: DatabaseReader,
  decode: Decode<E>,
  { stream, types, from = 1, to = Infinity, until, backwards = false, limit = Infinity }: OpenQuery,
): AsyncGenerator<Recorded<E>, void, void> {
  if (limit <= 0) return;
  let left = limit;
  let isFirst = true;
  const end = Math.min(to, until ? lastPositionUntil(reader, until.getTime()) : lastPosition(reader));
  for (const chunk of readChunks(reader, { stream, types, from: Math.max(1, from), to: end, backwards, limit })) {
    // A read of one chunk answers in the same turn.
    if (!isFirst) await nextTurn();
    isFirst = false;
    for (const stored of chunk) {
      yield decode(stored);
      left -= 1;
      if (left <= 0) return;
    }
  }
}
