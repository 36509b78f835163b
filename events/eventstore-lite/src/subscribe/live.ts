import { lastPosition } from "../read/bounds.ts";
import type { DatabaseReader } from "../read/database-reader.ts";
import type { Decode, Recall } from "../recorded.ts";
import type { NewEvent, Recorded } from "../store.ts";
import type { DurableBatch } from "../writer/settle.ts";
import { createFeed } from "./feed.ts";
import { createRecent } from "./recent.ts";
import { subscribe, type Following } from "./subscribe.ts";

/** All that serves subscribers: the end of the log in memory, and how far it goes. */
export interface Live<E extends NewEvent> {
  subscribe(following: Following): AsyncGenerator<readonly Recorded<E>[], void, void>;
  isFollowed(): boolean;
  /** Takes over what this process made durable. */
  onDurable(batch: DurableBatch): void;
  /** Another process appended, up to `position`. */
  onOthers(position: number): void;
  /** Ends all subscriptions with StoreClosed. */
  close(): void;
}

export function createLive<E extends NewEvent>(reader: DatabaseReader, decode: Decode<E>, recall: Recall<E>): Live<E> {
  const recent = createRecent(recall);
  const feed = createFeed({
    onFirstFollower: () => feed.advance(lastPosition(reader)),
    onLastFollowerGone: () => recent.clear(),
    onAllPast: (position) => recent.forget(position),
  });

  return {
    subscribe: (following) => subscribe({ feed, recent, reader, decode }, following),
    isFollowed: () => feed.isFollowed(),
    onDurable(batch) {
      recent.push(batch);
      const last = batch.appends.at(-1);
      if (last) feed.advance(last.appended.last);
    },
    onOthers: (position) => feed.advance(position),
    close: () => feed.close(),
  };
}
