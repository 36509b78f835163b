import { StoreClosed } from "../errors.ts";

/** Tells the subscriptions of a store how far its log goes. */
export interface Feed {
  /** Returns the last position known to be durable; it only grows. */
  head(): number;
  /** True while the log has a subscriber. */
  isFollowed(): boolean;
  follow(): Follower;
  advance(position: number): void;
  /** Ends all subscriptions: their next call throws {@link StoreClosed}. */
  close(): void;
}

export interface Follower {
  /**
   * Resolves when the log has grown since the last call, or when `wake` is called. Throws {@link StoreClosed} once the
   * store closes.
   */
  news(): Promise<void>;
  readonly wake: () => void;
  /** Tells the feed that this subscription needs no event before `position` any more. */
  isPast(position: number): void;
  leave(): void;
}

export interface FeedListener {
  /** The feed calls this when no subscription needs anything before `position` any more. */
  readonly onAllPast: (position: number) => void;
  readonly onFirstFollower: () => void;
  readonly onLastFollowerGone: () => void;
}

export function createFeed({ onFirstFollower, onLastFollowerGone, onAllPast }: FeedListener): Feed {
  /** Subscriptions, each with the first position that it still needs. */
  const followers = new Map<Follower, number>();
  let head = 0;
  let closed = false;

  function follow(): Follower {
    let hasNews = false;
    let notify: (() => void) | undefined;
    const follower: Follower = {
      async news() {
        if (!hasNews && !closed) await new Promise<void>((resolve) => (notify = resolve));
        if (closed) throw new StoreClosed();
        hasNews = false;
      },
      wake() {
        hasNews = true;
        notify?.();
      },
      isPast(position) {
        followers.set(follower, position);
        onAllPast(Math.min(...followers.values()));
      },
      leave() {
        if (followers.delete(follower) && followers.size === 0) onLastFollowerGone();
      },
    };
    followers.set(follower, 0);
    if (followers.size === 1) onFirstFollower();
    return follower;
  }

  function wakeAll(): void {
    for (const follower of followers.keys()) follower.wake();
  }

  return {
    head: () => head,
    isFollowed: () => followers.size > 0,
    follow,
    advance(position) {
      if (position <= head) return;
      head = position;
      wakeAll();
    },
    close() {
      closed = true;
      wakeAll();
    },
  };
}
