import type { LogStore } from "../../../events/event-types-and-codec.ts";

/**
 * Wraps the store so that a test controls how far folds get: a fold receives events one by one, and in all only as many
 * as the test allows by calls of `let`.
 */
export function gateFolds<Store extends LogStore>(store: Store) {
  const left = { permits: 0 };
  let waiting = Promise.withResolvers<void>();
  const seen: (number | undefined)[] = [];
  const readFolded: LogStore["readFolded"] = async function* (query = {}) {
    seen.push(query.from);
    for await (const batch of store.readFolded(query)) {
      for (const event of batch) {
        while (left.permits === 0) await waiting.promise;
        left.permits--;
        yield [event];
      }
    }
  };
  return {
    store: { ...store, readFolded } as Store,
    /** Start positions of the folds so far, in order. */
    seen,
    let(events: number): void {
      left.permits += events;
      waiting.resolve();
      waiting = Promise.withResolvers<void>();
    },
  };
}
