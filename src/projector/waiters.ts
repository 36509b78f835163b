/** Those who wait for a position of the log. */
export interface Waiters {
  /** Resolves when `position` is reached; rejects when it never will be. */
  wait(position: number): Promise<void>;
  /** Called for every event: one comparison when no caller waits for it. */
  reached(position: number): void;
  fail(reason: unknown): void;
}

interface Waiter {
  readonly position: number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export function createWaiters(): Waiters {
  /** The lowest position first. Most come in the order of the log, so they are added at the end. */
  const waiting: Waiter[] = [];
  let next = Infinity;

  return {
    wait(position) {
      return new Promise((resolve, reject) => {
        const before = waiting.findLastIndex((waiter) => waiter.position <= position);
        waiting.splice(before + 1, 0, { position, resolve, reject });
        next = waiting[0]?.position ?? Infinity;
      });
    },
    reached(position) {
      if (position < next) return;
      const later = waiting.findIndex((waiter) => waiter.position > position);
      for (const waiter of waiting.splice(0, later === -1 ? waiting.length : later)) waiter.resolve();
      next = waiting[0]?.position ?? Infinity;
    },
    fail(reason) {
      for (const waiter of waiting.splice(0)) waiter.reject(reason);
      next = Infinity;
    },
  };
}
