import { StoreClosed } from "../errors.ts";

/** Tells followers how far the log goes. */
export interface Feed {
  /** The last position known to be durable; only grows. */
  head(): number;
  /** True while somebody follows. */
  isFollowed(): boolean;
  follow(): Follower;
  advance(position: number): void;
  /** Wakes all followers for good: they find {@link StoreClosed}. */
  close(): void;
}

export interface Follower {
  /** Resolves when the head moved since the last call, or on `wake`. Throws {@link StoreClosed} once the store closes. */
  news(): Promise<void>;
  readonly wake: () => void;
  leave(): void;
}

export interface FeedListener {
  readonly onFirstFollower: () => void;
  readonly onLastFollowerGone: () => void;
}

export function createFeed({ onFirstFollower, onLastFollowerGone }: FeedListener): Feed {
  const followers = new Set<Follower>();
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
      leave() {
        if (followers.delete(follower) && followers.size === 0) onLastFollowerGone();
      },
    };
    followers.add(follower);
    if (followers.size === 1) onFirstFollower();
    return follower;
  }

  function wakeAll(): void {
    for (const follower of followers) follower.wake();
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
