import type { StoredEvent } from "./codec.ts";
import type { NewEvent, Query, Recorded } from "./event-store-interface.ts";

/** A {@link Query} whose members may also be given as undefined. */
export type OpenQuery = { readonly [Member in keyof Query]: Query[Member] | undefined };

/**
 * Decodes one chunk. If that fails, yields its events one by one, so that those before the fault are still handed out.
 */
export async function* decodeAll<E extends NewEvent>(
  chunk: StoredEvent[],
  decode: (rows: StoredEvent[]) => Promise<readonly Recorded<E>[]>,
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

/** Yields the members of each batch one by one, until `signal` aborts. */
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
