import type { DurableBatch } from "../append/settle-batch.ts";
import type { NewEvent, Recorded } from "../event-store-interface.ts";
import { createFeed, type Feed } from "./head-feed.ts";
import { createRecent, type Decoding, type Matches, type Recent } from "./recent-batches.ts";

/** The part of an engine that subscriptions use. */
export interface SubscribeEngine<E extends NewEvent> extends Decoding<E> {
  /** Yields the matching events of a range of the log, in order, in batches; may end early once `signal` aborts. */
  read(
    range: Omit<Following, "signal"> & { readonly to: number; readonly signal?: AbortSignal },
  ): AsyncIterable<readonly Recorded<E>[]>;
  /** Calls `onHead` with the log's last position, now and whenever it grows, until the returned function is called. */
  watch(onHead: (position: number) => void): () => void;
}

interface Sources<E extends NewEvent> {
  readonly feed: Feed;
  readonly recent: Recent<E>;
  readonly read: SubscribeEngine<E>["read"];
}

/** The events to follow, and the position to begin with. */
export interface Following {
  readonly stream?: string | undefined;
  readonly types?: readonly string[] | undefined;
  readonly from: number;
  readonly signal: AbortSignal;
}

/**
 * Follows the log by position: takes the next events from memory, or else from disk, or else waits for the head to
 * move. It only ever asks for "the next position", so no event is skipped or handed out twice.
 */
async function* subscribe<E extends NewEvent>(
  { feed, recent, read }: Sources<E>,
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
        const events = await batch.take(next, matches);
        if (signal.aborted) return;
        next = batch.last + 1;
        follower.isPast(next);
        if (events.length > 0) yield events;
      } else if (next <= feed.head()) {
        const to = Math.min(feed.head(), recent.nextHeld(next) - 1);
        for await (const events of read({ stream, types, from: next, to, signal })) {
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

/** Serves subscribers: holds the newest events in memory, and knows how far the log goes. */
export interface Live<E extends NewEvent> {
  subscribe(following: Following): AsyncGenerator<readonly Recorded<E>[], void, void>;
  isFollowed(): boolean;
  /** Passes on the events that this process made durable. */
  onDurable(batch: DurableBatch): void;
  /** The store calls this when another process has appended up to `position`. */
  onOthers(position: number): void;
  /** Ends all subscriptions with StoreClosed. */
  close(): void;
}

export function createLive<E extends NewEvent>(engine: SubscribeEngine<E>): Live<E> {
  const { read, watch } = engine;
  const recent = createRecent(engine);
  let stopWatching = (): void => undefined;
  const feed = createFeed({
    onFirstFollower() {
      stopWatching = watch((position) => feed.advance(position));
    },
    onLastFollowerGone() {
      stopWatching();
      recent.clear();
    },
    onAllPast: (position) => recent.forget(position),
  });

  return {
    subscribe: (following) => subscribe({ feed, recent, read }, following),
    isFollowed: () => feed.isFollowed(),
    onDurable(batch) {
      recent.push(batch);
      const last = batch.appends.at(-1);
      if (last) feed.advance(last.appended.last);
    },
    onOthers: (position) => feed.advance(position),
    close() {
      stopWatching();
      feed.close();
    },
  };
}
