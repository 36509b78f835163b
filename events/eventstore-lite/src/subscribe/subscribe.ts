import type { DatabaseReader } from "../read/database-reader.ts";
import { readBatches } from "../read/read.ts";
import type { Decode } from "../recorded.ts";
import type { NewEvent, Recorded } from "../store.ts";
import type { Feed } from "./feed.ts";
import type { Matches, Recent } from "./recent.ts";

export interface SubscribeSources<E extends NewEvent> {
  readonly feed: Feed;
  readonly recent: Recent<E>;
  readonly reader: DatabaseReader;
  readonly decode: Decode<E>;
}

/** What to follow, from which position on. */
export interface Following {
  readonly stream?: string | undefined;
  readonly types?: readonly string[] | undefined;
  readonly from: number;
  readonly signal: AbortSignal;
}

/**
 * Follows the log by position: takes what comes next from memory, else from disk, else waits for the head to move.
 * Since it only ever asks for "the next position", nothing is skipped or told twice, whichever way an event comes.
 */
export async function* subscribe<E extends NewEvent>(
  { feed, recent, reader, decode }: SubscribeSources<E>,
  { stream, types, from, signal }: Following,
): AsyncGenerator<readonly Recorded<E>[], void, void> {
  if (signal.aborted) return;
  const follower = feed.follow();
  signal.addEventListener("abort", follower.wake);
  const matches = createFilter(stream, types);
  let next = Math.max(1, from);
  try {
    while (!signal.aborted) {
      const batch = recent.holding(next);
      if (batch) {
        const events = batch.take(next, matches);
        next = batch.last + 1;
        follower.isPast(next);
        if (events.length > 0) yield events;
      } else if (next <= feed.head()) {
        const to = feed.head();
        for await (const events of readBatches(reader, decode, { stream, types, from: next, to })) {
          if (signal.aborted) return;
          yield events;
        }
        next = to + 1;
        follower.isPast(next);
      } else {
        await follower.news();
      }
    }
  } finally {
    signal.removeEventListener("abort", follower.wake);
    follower.leave();
  }
}

function createFilter(stream: string | undefined, types: readonly string[] | undefined): Matches {
  const wanted = types && new Set(types);
  return (ofStream, type) => (stream === undefined || ofStream === stream) && (!wanted || wanted.has(type));
}
