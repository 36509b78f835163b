import type { Awaitable } from "../../awaitable.ts";
import type { Decode, FoldedRow, StoredEvent } from "../../codec.ts";
import { nextTurn } from "../../next-turn.ts";
import type { Folded, NewEvent, Query, Recorded } from "../../store.ts";
import { lastPosition, lastPositionUntil } from "./bounds.ts";
import { type Chunks, FOLDED, type Range, readChunks, WHOLE } from "./chunks.ts";
import type { DatabaseReader } from "./database-reader.ts";

/** {@link Query} whose members may be given as undefined. */
export type OpenQuery = { readonly [Member in keyof Query]: Query[Member] | undefined };

/**
 * Reads what the log holds when the first event is asked for; what is appended meanwhile is left out.
 * Between chunks other work gets its turn.
 */
export async function* readBatches<E extends NewEvent>(
  reader: DatabaseReader,
  decode: Decode<E>,
  query: OpenQuery,
): AsyncGenerator<readonly Recorded<E>[], void, void> {
  for await (const chunk of inTurns((range) => readChunks(reader, WHOLE, range), reader, query)) {
    yield* decodeAll(chunk, decode);
  }
}

/** One batch; what comes before an event that cannot be decoded is still handed out, one by one. */
async function* decodeAll<E extends NewEvent>(
  chunk: readonly StoredEvent[],
  decode: Decode<E>,
): AsyncGenerator<readonly Recorded<E>[], void, void> {
  let events: readonly Recorded<E>[] | undefined;
  try {
    events = await decode(chunk);
  } catch (error) {
    if (chunk.length === 1) throw error;
  }
  if (events !== undefined) yield events;
  else for (const stored of chunk) yield await decode([stored]);
}

export async function* readFolded<E extends NewEvent>(
  reader: DatabaseReader,
  decode: (rows: FoldedRow[]) => Awaitable<readonly Folded<E>[]>,
  query: OpenQuery,
): AsyncGenerator<readonly Folded<E>[], void, void> {
  for await (const chunk of inTurns((range) => readChunks(reader, FOLDED, range), reader, query))
    yield await decode(chunk);
}

/** The chunks of a query with at most `limit` rows in all, none of them empty. */
async function* inTurns<Row>(
  chunksOf: (range: Range) => Chunks<Row>,
  reader: DatabaseReader,
  { stream, types, from = 1, to = Infinity, until, backwards = false, limit = Infinity }: OpenQuery,
): AsyncGenerator<Row[], void, void> {
  if (limit <= 0) return;
  let left = limit;
  let isFirst = true;
  const end = Math.min(to, until ? lastPositionUntil(reader, until.getTime()) : lastPosition(reader));
  for (const chunk of chunksOf({ stream, types, from: Math.max(1, from), to: end, backwards, limit })) {
    // A read of one chunk answers in the same turn.
    if (!isFirst) await nextTurn();
    isFirst = false;
    if (chunk.length > 0) yield chunk.length > left ? chunk.slice(0, left) : chunk;
    left -= chunk.length;
    if (left <= 0) return;
  }
}

/** The members of each batch, one after the other; none any more once `signal` aborts. */
export async function* oneByOne<Member>(
  batches: AsyncIterable<readonly Member[]>,
  signal?: AbortSignal,
): AsyncGenerator<Member, void, void> {
  for await (const batch of batches) {
    for (const member of batch) {
      if (signal?.aborted) return;
      yield member;
    }
  }
}
