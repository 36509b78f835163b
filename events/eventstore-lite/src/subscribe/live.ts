import type { DatabaseReader } from "../read/database-reader.ts";
import type { Decode } from "../recorded.ts";
import type { NewEvent, Recorded, SubscribeQuery } from "../store.ts";
import type { DurableBatch } from "../writer/settle.ts";
import { createFeed, storedEvents } from "./feed.ts";
import { createRecent } from "./recent.ts";
import { subscribe } from "./subscribe.ts";
import { createWatch } from "./watch.ts";

/** All that serves subscribers: the end of the log in memory, the head, and the look-out for other processes. */
export interface Live<E extends NewEvent> {
  subscribe(query: SubscribeQuery): AsyncGenerator<Recorded<E>, void, void>;
  isFollowed(): boolean;
  /** Takes over what this process made durable. */
  onDurable(batch: DurableBatch): void;
  /** Ends all subscriptions with StoreClosed. */
  close(): void;
}

export function createLive<E extends NewEvent>(reader: DatabaseReader, decode: Decode<E>): Live<E> {
  const recent = createRecent(decode);
  const watch = createWatch(reader, (position) => feed.advance(position));
  const feed = createFeed({
    onFirstFollower: () => watch.start(),
    onLastFollowerGone() {
      watch.stop();
      recent.clear();
    },
  });

  return {
    subscribe: (query) => subscribe({ feed, recent, reader, decode }, query),
    isFollowed: () => feed.isFollowed(),
    onDurable(batch) {
      for (const stored of storedEvents(batch)) recent.push(stored);
      const last = batch.appends.at(-1);
      if (last) feed.advance(last.appended.last);
    },
    close() {
      watch.stop();
      feed.close();
    },
  };
}
