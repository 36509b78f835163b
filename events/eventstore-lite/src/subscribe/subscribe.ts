import type { DatabaseReader } from "../read/database-reader.ts";
import { readEvents } from "../read/read.ts";
import type { Decode, StoredEvent } from "../recorded.ts";
import type { NewEvent, Recorded, SubscribeQuery } from "../store.ts";
import type { Feed } from "./feed.ts";
import type { Recent } from "./recent.ts";

export interface SubscribeSources<E extends NewEvent> {
  readonly feed: Feed;
  readonly recent: Recent<E>;
  readonly reader: DatabaseReader;
  readonly decode: Decode<E>;
}

/**
 * Follows the log by position: takes the next event from memory, else from disk, else waits for the head to move.
 * Since it only ever asks for "the next position", nothing is skipped or told twice, whichever way an event comes.
 */
export async function* subscribe<E extends NewEvent>(
  { feed, recent, reader, decode }: SubscribeSources<E>,
  { stream, types, from, signal }: SubscribeQuery,
): AsyncGenerator<Recorded<E>, void, void> {
  if (signal.aborted) return;
  const follower = feed.follow();
  signal.addEventListener("abort", follower.wake);
  const matches = createFilter(stream, types);
  let next = Math.max(1, from);
  try {
    while (!signal.aborted) {
      const event = recent.at(next);
      if (event) {
        next += 1;
        if (matches(event.stored)) yield event.decoded();
      } else if (next <= feed.head()) {
        const to = feed.head();
        for await (const read of readEvents(reader, decode, { stream, types, from: next, to })) {
          if (signal.aborted) return;
          yield read;
        }
        next = to + 1;
      } else {
        await follower.news();
      }
    }
  } finally {
    signal.removeEventListener("abort", follower.wake);
    follower.leave();
  }
}

function createFilter(
  stream: string | undefined,
  types: readonly string[] | undefined,
): (event: StoredEvent) => boolean {
  const wanted = types && new Set(types);
  return (event) => (stream === undefined || event.stream === stream) && (!wanted || wanted.has(event.type));
}
